/** Verifier: after its success, a target keeps its slot for the rest period of the plan. */
import { rfc3339 } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import { type Gate, PASS, wait } from './types.ts';

export const restOver: Gate = {
  name: 'rest-over',
  evaluate({ stage: { restMs }, target, facts: { observation, watchedMs }, now }) {
    if (restMs === undefined || observation.kind !== 'succeeded') return PASS;
    // The leader's own clock also limits the rest, because the clock of the node may be ahead.
    const until = Math.min(Date.parse(observation.since), now - (watchedMs ?? 0)) + restMs;
    // This negation is also true for NaN: a time that cannot be read does not delay the target forever.
    if (!(now < until)) return PASS;
    const message = `${target.name} rests for ${formatDuration(restMs)} before its slot is free`;
    return wait('Resting', message, 'its rest is over', {
      recheckMs: until - now,
      until: rfc3339(until),
    });
  },
};
