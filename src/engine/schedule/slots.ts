/** Owns how many targets of a stage may start now. */
import type { RecordedState, Stage } from '../model.ts';

/** Two controllers at once can cost the quorum, so no plan may ask for that. */
const CONTROLLERS_IN_FLIGHT = 1;

export function limitOf(stage: Stage): number {
  return stage.role === 'controller' ? Math.min(CONTROLLERS_IN_FLIGHT, stage.maxInFlight) : stage.maxInFlight;
}

/** A slot is taken from the recorded intent to the recorded end, whatever the node itself says in between. */
export function freeSlots(stage: Stage): number {
  const holding: readonly RecordedState[] = stage.failedHoldSlots === true ? ['intended', 'failed'] : ['intended'];
  return Math.max(0, limitOf(stage) - stage.targets.filter(({ state }) => holding.includes(state)).length);
}
