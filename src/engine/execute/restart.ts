/**
 * Starts an ended plan again after somebody has edited it. This takes two writes. The first write adds an annotation
 * that orders the new run. The second write replaces the record of the earlier run with the first record of the new
 * run. Each write carries the resourceVersion that was read, so the next leader continues after a crash, and if two
 * leaders write, one write fails. Until the second write, the order can be cancelled: it counts only while the policy
 * lets edits start a run and nobody has aborted the plan.
 */
import { annotated, type KubeObject, withoutAnnotations } from '../../kube/resources.ts';
import { ifUnchanged } from '../../kube/status-error.ts';
import { controlsOn } from '../model/controls.ts';
import {
  ROLLS_BACK_ANNOTATION,
  ROLLS_BACK_REASON_ANNOTATION,
  rolledBackBy,
} from '../model/earlier-versions.ts';
import type { Reason } from '../model/reasons.ts';
import { isFinal, type Rollout } from '../model/rollout.ts';
import { orderedRollBack, orderedRun, withOrder } from '../model/runs.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import type { Effects } from './writes.ts';

/** Returns the plan as decisions see it. If a run is ordered but has not begun, the returned plan has no record. */
export function withRunBegun(
  { dialect, world }: Pick<Effects, 'dialect' | 'world'>,
  plan: KubeObject,
  policy: RolloutPolicy,
  now: number,
): KubeObject {
  const { reruns } = dialect;
  const ordered = orderedRun(plan);
  if (!reruns || ordered === undefined || !allowsOrder(plan, policy)) return plan;
  // An order counts only for the present generation. An order for an older generation is used up: either its run has
  // begun already, or the plan was edited again.
  if (ordered !== plan.metadata.generation || reruns.recordOf(plan)?.run === ordered) return plan;
  if (controlsOn(plan, dialect.planObjects?.controlPrefix).abort !== undefined) return plan;
  const rollout = dialect.resolve(plan, world, now);
  return isFinal(rollout) && !rollout.unread ? reruns.withoutRecord(plan) : plan;
}

/**
 * Returns true if the policy lets the leader order a run of this plan. The leader may do so after an edit, or if the
 * plan rolls back its own earlier run.
 */
function allowsOrder(plan: KubeObject, policy: RolloutPolicy): boolean {
  if (policy.restartsEdited) return true;
  const isOwn = rolledBackBy(plan)?.startsWith(`${plan.metadata.uid}/`) === true;
  return policy.rollsBackOnFailure === true && isOwn;
}

/**
 * Writes the plan that rolls back the run `failed`, and orders a run of this plan, in one write. If the leader ends
 * before the write, nothing has changed. If it ends after the write, the next leader begins the ordered run. Resolves
 * with false, and writes nothing, if the plan has changed.
 */
export async function orderRollBack(
  { dialect, client, ownWrites, abort }: Effects,
  back: KubeObject,
  failed: Rollout,
  reason: Reason,
): Promise<boolean> {
  const { generation, uid } = back.metadata;
  if (generation === undefined) return false;
  const run = `${uid}/${failed.id}`;
  const annotations = {
    [ROLLS_BACK_ANNOTATION]: run,
    [ROLLS_BACK_REASON_ANNOTATION]: reason.message,
  };
  // The order names the next generation, because this write changes the spec and the API server then adds one to the generation.
  const ordered = withOrder(annotated(back, annotations), generation + 1, run);
  const plan = dialect.reruns?.withoutRecord(ordered) ?? ordered;
  const written = await ifUnchanged(client.replace(dialect.plans, plan, { abort }));
  if (written) ownWrites.remember(dialect.plans, written);
  return written !== undefined;
}

/**
 * Orders a new run of the plan, and removes the counts of the earlier run. Resolves with false, and writes nothing, if the plan has
 * changed.
 */
export async function orderRestart(
  { dialect, client, ownWrites, abort }: Effects,
  edited: KubeObject,
): Promise<boolean> {
  const { generation } = edited.metadata;
  if (generation === undefined) return false;
  const ordered = withOrder(withoutLedRollBack(edited), generation);
  const plan = dialect.reruns?.withoutRecord(ordered) ?? ordered;
  const written = await ifUnchanged(client.replace(dialect.plans, plan, { abort }));
  if (written) ownWrites.remember(dialect.plans, written);
  return written !== undefined;
}

/**
 * Returns the plan without the annotations of the last roll-back if the leader ordered that roll-back. The new run
 * follows an edit and rolls nothing back. Annotations that somebody else has written since then stay.
 */
function withoutLedRollBack(plan: KubeObject): KubeObject {
  const led = orderedRollBack(plan);
  return led !== undefined && led === rolledBackBy(plan)
    ? withoutAnnotations(plan, ROLLS_BACK_ANNOTATION, ROLLS_BACK_REASON_ANNOTATION)
    : plan;
}
