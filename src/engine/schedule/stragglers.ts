/** Owns who was given up and is still at work: what moves counts against the limits, whatever is recorded of it. */
import { factsOf } from '../gate-input.ts';
import { isAlive, LIFE_MS } from '../life.ts';
import type { Snapshot, Target } from '../model.ts';

export interface Straggler {
  readonly target: Target;
  /** Milliseconds until it counts no more, where it says nothing new. */
  readonly leftMs: number;
}

/**
 * Of all stages. One whose node is not Ready is down: that is what the failure budget is for. Where failed targets hold
 * their slots anyway, none is counted twice.
 */
export function stragglersIn(snapshot: Snapshot, now: number): Straggler[] {
  return snapshot.campaign.stages
    .filter(({ failedHoldSlots }) => failedHoldSlots !== true)
    .flatMap(({ targets }) => targets.filter(({ state }) => state === 'failed'))
    .flatMap((target) => {
      const { observation, ready } = factsOf(snapshot, target);
      const isAtWork = observation.kind === 'sent' || observation.kind === 'working';
      if (!isAtWork || ready === false || !isAlive(observation.since, now)) return [];
      return [{ target, leftMs: Date.parse(observation.since) + LIFE_MS - now }];
    });
}
