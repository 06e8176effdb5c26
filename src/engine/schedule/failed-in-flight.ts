/** Failed targets that are still at work: they count against the limits. */
import { factsOf } from '../gates/context.ts';
import type { Snapshot } from '../model/observed.ts';
import type { Target } from '../model/recorded.ts';
import { isFresh, STALE_AFTER_MS } from '../observe/gather.ts';

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
      if (!isAtWork || ready === false || !isFresh(observation.since, now)) return [];
      return [{ target, leftMs: Date.parse(observation.since) + STALE_AFTER_MS - now }];
    });
}
