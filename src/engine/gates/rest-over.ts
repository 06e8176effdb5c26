/** Verifier: a target keeps its slot after its success for the rest period of the plan. */
import { rfc3339 } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import { type Gate, PASS, wait } from './types.ts';

export const restOver: Gate = {
  name: 'rest-over',
  evaluate({ stage: { restMs }, target, facts: { observation, watchedMs }, now }) {
    if (restMs === undefined || observation.kind !== 'succeeded') return PASS;
    // No later than by our own clock: that of the node may be ahead.
    const until = Math.min(Date.parse(observation.since), now - (watchedMs ?? 0)) + restMs;
    // An unreadable time must not wait forever.
    if (!(now < until)) return PASS;
    const message = `${target.name} rests for ${formatDuration(restMs)} before its slot is free`;
    return wait('Resting', message, 'its rest is over', {
      recheckMs: until - now,
      until: rfc3339(until),
    });
  },
};
