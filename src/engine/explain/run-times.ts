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

/**
 * Returns the runs. Each run without an end is marked as ended now. If its plan still exists, with the uid `present`, the
 * plan asks for something else now, and another run replaces this run. Otherwise the plan was deleted.
 */
export function endOpenRuns(
  runs: readonly NodeRolloutRun[],
  now: number,
  present?: string,
): NodeRolloutRun[] {
  const ended = rfc3339(now);
  return runs.map((run): NodeRolloutRun => {
    if (run.ended !== undefined) return run;
    return run.planUid === present
      ? { ...run, ended, phase: 'edited', message: REPLACED_RUN }
      : { ...run, ended, phase: 'deleted' };
  });
}

const REPLACED_RUN =
  'what the plan asks for changed while it ran, so another run replaced this one';
