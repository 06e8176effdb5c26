/**
 * Lets an edited plan that has ended start again, in two writes: an annotation orders the new run, then its first record
 * replaces that of the run before. Each write has the resourceVersion that was read. So after a crash the next leader goes on
 * with the second write, and of two leaders one fails. Until that write the order can be withdrawn: it counts only while the
 * policy lets edits start a run and nobody aborted the plan.
 */
import type { KubeObject } from '../../kube/resources.ts';
import { ifUnchanged } from '../../kube/status-error.ts';
import { controlsOn } from '../model/controls.ts';
import { isFinal } from '../model/rollout.ts';
import { orderedRun, withOrder } from '../model/runs.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import type { Effects } from './writes.ts';

/** The plan as decisions see it: without its record if a run is ordered that has not begun. */
export function withRunBegun(
  { dialect, world }: Pick<Effects, 'dialect' | 'world'>,
  plan: KubeObject,
  { restartsEdited }: RolloutPolicy,
  now: number,
): KubeObject {
  const { reruns } = dialect;
  const ordered = orderedRun(plan);
  // An order of an older generation is fulfilled, or another edit has come since.
  if (!reruns || !restartsEdited || ordered === undefined) return plan;
  if (ordered !== plan.metadata.generation || reruns.recordOf(plan)?.run === ordered) return plan;
  if (controlsOn(plan, dialect.planObjects?.controlPrefix).abort !== undefined) return plan;
  const rollout = dialect.resolve(plan, world, now);
  return isFinal(rollout) && !rollout.unread ? reruns.withoutRecord(plan) : plan;
}

/** Orders a new run of the plan. False if the plan has changed: nothing is written then. The counts of the earlier run go with this write. */
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
