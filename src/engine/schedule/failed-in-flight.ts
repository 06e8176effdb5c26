/** Failed targets that are still at work: they count against the limits. */
import { factsOf } from '../gates/context.ts';
import type { Snapshot } from '../model/observed.ts';
import type { Target } from '../model/recorded.ts';
import { STALE_AFTER_MS } from '../observe/gather.ts';

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
