/**
 * Lets an edited plan that has ended start again. That takes two writes: an annotation orders the new run, and then the first record
 * of the new run replaces the record of the run before. Each write carries the resourceVersion that was read. So the next leader
 * continues after a crash, and if two leaders write, one of them fails. Until the second write, the order can be taken back: it
 * counts only while the policy lets edits start a run and nobody has aborted the plan.
 */
import type { KubeObject } from '../../kube/resources.ts';
import { ifUnchanged } from '../../kube/status-error.ts';
import { controlsOn } from '../model/controls.ts';
import { isFinal } from '../model/rollout.ts';
import { orderedRun, withOrder } from '../model/runs.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import type { Effects } from './writes.ts';

/** Returns the plan as decisions see it. If a run is ordered but has not begun, the plan comes without its record. */
export function withRunBegun(
  { dialect, world }: Pick<Effects, 'dialect' | 'world'>,
  plan: KubeObject,
  { restartsEdited }: RolloutPolicy,
  now: number,
): KubeObject {
  const { reruns } = dialect;
  const ordered = orderedRun(plan);
  // An order of an older generation either led to a run already, or was followed by another edit.
  if (!reruns || !restartsEdited || ordered === undefined) return plan;
  if (ordered !== plan.metadata.generation || reruns.recordOf(plan)?.run === ordered) return plan;
  if (controlsOn(plan, dialect.planObjects?.controlPrefix).abort !== undefined) return plan;
  const rollout = dialect.resolve(plan, world, now);
  return isFinal(rollout) && !rollout.unread ? reruns.withoutRecord(plan) : plan;
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
  const ordered = withOrder(edited, generation);
  const plan = dialect.reruns?.withoutRecord(ordered) ?? ordered;
  const written = await ifUnchanged(client.replace(dialect.plans, plan, { abort }));
  if (written) ownWrites.remember(dialect.plans, written);
  return written !== undefined;
}
