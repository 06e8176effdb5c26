/** Finds out when a run of a plan started and ended. Every place that names the start of a run uses this file. */
import type { NodeRolloutRun } from '../../api/refit/node-rollout.ts';

export interface NamedRun {
  readonly id: string;
  readonly planUid: string;
}

/**
 * Returns the recorded start of the run. If the history does not have the run, returns `first()`, the earliest time of
 * the targets, or the end of the last earlier run if that is later: targets that have not moved yet may still have the
 * times of the earlier run.
 */
export function startOfRun(
  history: readonly NodeRolloutRun[],
  { id, planUid }: NamedRun,
  first: () => string,
): string {
  const ofPlan = history.filter((run) => run.planUid === planUid);
  const own = ofPlan.find((run) => run.id === id);
  return own?.started ?? startAfter(ofPlan, first());
}

function startAfter(earlier: readonly NodeRolloutRun[], first: string): string {
  const ends = earlier.flatMap(({ ended }) => ended ?? []);
  return ends.reduce((start, end) => (Date.parse(end) > Date.parse(start) ? end : start), first);
}

/** Returns the recorded end of the run; undefined if the history does not have it. */
export function endOfRun(
  history: readonly NodeRolloutRun[],
  { id, planUid }: NamedRun,
): string | undefined {
  return history.find((run) => run.planUid === planUid && run.id === id)?.ended;
}
