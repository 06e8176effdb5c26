/** How many targets of a stage may start now; failed targets that are still at work count too. */
import { onceForEach } from '../../util/memo.ts';
import { factsOf } from '../gates/context.ts';
import type { Snapshot } from '../model/decision.ts';
import type { RecordedState, Stage, Target } from '../model/recorded.ts';
import { STALE_AFTER_MS } from '../observe/gather.ts';

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

export interface FailedInFlight {
  readonly target: Target;
  /** Milliseconds until it no longer counts, without a new report. */
  readonly leftMs: number;
}

/** Of all stages but those whose failed targets hold their slots. Nodes that are not Ready do not work any more. */
export function failedInFlightIn(snapshot: Snapshot, now: number): FailedInFlight[] {
  return snapshot.rollout.stages
    .filter(({ failedHoldSlots }) => failedHoldSlots !== true)
    .flatMap(({ targets }) => targets.filter(({ state }) => state === 'failed'))
    .flatMap((target) => {
      const { observation, ready } = factsOf(snapshot, target);
      const isAtWork = observation.kind === 'sent' || observation.kind === 'working';
      if (!isAtWork || ready === false) return [];
      // The node's own time may be ahead or unreadable: it cannot hold the slot for long after the recorded failure.
      const failed = Date.parse(target.since);
      const reported = Date.parse(observation.since);
      const last = Number.isNaN(reported) ? failed : Math.min(reported, failed + STALE_AFTER_MS);
      const leftMs = last + STALE_AFTER_MS - now;
      return leftMs > 0 ? [{ target, leftMs }] : [];
    });
}
