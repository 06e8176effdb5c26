/** Finds out how the leader could take a failed run back, from what the NodeRollout records about it. */
import { isUnanswered, type PossibleRollBack } from '../model/decision.ts';
import type { Scene } from './gather.ts';

const NOBODY = 'plans of this dialect are taken back by people only';

/** Returns undefined unless the rollout has failed. `now` is in milliseconds. */
export function possibleRollBack(
  { dialect, plan, rollout, world, known: { decisions } }: Scene,
  now: number,
): PossibleRollBack | undefined {
  const { rollBack } = dialect;
  if (rollBack === undefined) return { byHand: NOBODY };
  if ('byHand' in rollBack) return rollBack;
  if (rollout.phase !== 'failed') return undefined;
  if (typeof decisions !== 'object' || isUnanswered(decisions)) return 'unrecorded';
  const { history = [] } = decisions;
  const run = history.find(
    ({ id, planUid }) => id === rollout.id && planUid === rollout.source.uid,
  );
  // Only a run whose end is recorded keeps its place in the history when the next one begins.
  if (run?.ended === undefined) return 'unrecorded';
  return rollBack.planBack({ plan, rollout, world, run, history }, now);
}
