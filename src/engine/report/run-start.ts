/** Finds out when a run of a plan started, if an earlier run of the same plan object is known. */
import type { NodeRolloutRun } from '../../api/refit/node-rollout.ts';

/**
 * Returns `first`, the earliest time of the targets, or the end of the last earlier run if that is later: targets that have not moved
 * yet may still have the times of the earlier run.
 */
export function startAfter(
  earlier: readonly NodeRolloutRun[],
  planUid: string,
  first: string,
): string {
  const ends = earlier.flatMap((run) => (run.planUid === planUid ? (run.ended ?? []) : []));
  return ends.reduce((start, end) => (Date.parse(end) > Date.parse(start) ? end : start), first);
}
