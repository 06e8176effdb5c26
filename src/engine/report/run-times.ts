/** Finds out when a run of a plan started and ended. Every place that names the start of a run uses this file. */
import type { NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import { rfc3339 } from '../../util/clock.ts';

export interface NamedRun {
  readonly id: string;
  readonly planUid: string;
}

/**
 * Returns the recorded start of the run. If the history does not have the run, returns the earliest time of its targets,
 * `first()`. If an earlier run of the plan ended after that time, the time belongs to this earlier run, because no target
 * has moved yet. In this case the run starts `now`.
 */
export function startOfRun(
  history: readonly NodeRolloutRun[],
  { id, planUid }: NamedRun,
  { first, now }: { readonly first: () => string; readonly now: number },
): string {
  const ofPlan = history.filter((run) => run.planUid === planUid);
  const own = ofPlan.find((run) => run.id === id);
  if (own) return own.started;
  const start = first();
  const isOfEarlierRun = ofPlan.some(({ ended = '' }) => Date.parse(ended) >= Date.parse(start));
  return isOfEarlierRun ? rfc3339(now) : start;
}

/** Returns the recorded end of the run; undefined if the history does not have it. */
export function endOfRun(
  history: readonly NodeRolloutRun[],
  { id, planUid }: NamedRun,
): string | undefined {
  return history.find((run) => run.planUid === planUid && run.id === id)?.ended;
}
