/** How many targets of a stage may start now. */
import { onceForEach } from '../../util/memo.ts';
import type { RecordedState, Stage } from '../model/recorded.ts';

/** Two controllers at once can cost the quorum. */
const CONTROLLERS_IN_FLIGHT = 1;

export function limitOf(stage: Stage): number {
  return stage.role === 'controller' ? Math.min(CONTROLLERS_IN_FLIGHT, stage.maxInFlight) : stage.maxInFlight;
}

/** A target holds its slot from its recorded intent to its recorded end. */
export function freeSlots(stage: Stage): number {
  return Math.max(0, limitOf(stage) - heldSlots(stage));
}

/** Computed once per stage: every target in flight needs it. */
const heldSlots = onceForEach(({ targets, failedHoldSlots }: Stage): number => {
  const holding: readonly RecordedState[] = failedHoldSlots === true ? ['intended', 'failed'] : ['intended'];
  return targets.filter(({ state }) => holding.includes(state)).length;
});
