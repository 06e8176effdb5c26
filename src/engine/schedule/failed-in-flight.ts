/** Owns who was given up and is still at work: what moves counts against the limits, whatever is recorded of it. */
import { factsOf } from '../gates/context.ts';
import type { Snapshot } from '../model/observed.ts';
import type { Target } from '../model/recorded.ts';
import { isFresh, STALE_AFTER_MS } from '../observe/gather.ts';

export interface FailedInFlight {
  readonly target: Target;
  /** Milliseconds until it counts no more, where it says nothing new. */
  readonly leftMs: number;
}

/**
 * Of all stages. One whose node is not Ready is down: that is what the failure budget is for. Where failed targets hold
 * their slots anyway, none is counted twice.
 */
export function failedInFlightIn(snapshot: Snapshot, now: number): FailedInFlight[] {
  return snapshot.rollout.stages
    .filter(({ failedHoldSlots }) => failedHoldSlots !== true)
    .flatMap(({ targets }) => targets.filter(({ state }) => state === 'failed'))
    .flatMap((target) => {
      const { observation, ready } = factsOf(snapshot, target);
      const isAtWork = observation.kind === 'sent' || observation.kind === 'working';
      if (!isAtWork || ready === false || !isFresh(observation.since, now)) return [];
      return [{ target, leftMs: Date.parse(observation.since) + STALE_AFTER_MS - now }];
    });
}
