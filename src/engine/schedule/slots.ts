/** Owns how many targets of a stage may start now. */
import { onceForEach } from '../../util/memo.ts';
import type { RecordedState, Stage } from '../model/recorded.ts';

/** Two controllers at once can cost the quorum, so no plan may ask for that. */
const CONTROLLERS_IN_FLIGHT = 1;

export function limitOf(stage: Stage): number {
  return stage.role === 'controller' ? Math.min(CONTROLLERS_IN_FLIGHT, stage.maxInFlight) : stage.maxInFlight;
}

/** A slot is taken from the recorded intent to the recorded end, whatever the node itself says in between. */
export function freeSlots(stage: Stage): number {
  return Math.max(0, limitOf(stage) - heldSlots(stage));
}

/** Every target in flight asks for it. */
const heldSlots = onceForEach(({ targets, failedHoldSlots }: Stage): number => {
  const holding: readonly RecordedState[] = failedHoldSlots === true ? ['intended', 'failed'] : ['intended'];
  return targets.filter(({ state }) => holding.includes(state)).length;
});
