/** Verifier: a target keeps its slot for a while after its success, where its plan says so. */
import { rfc3339 } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import { because } from '../model/reasons.ts';
import { type Gate, PASS } from './types.ts';

export const restOver: Gate = {
  name: 'rest-over',
  evaluate({ stage: { restMs }, target, facts: { observation }, now }) {
    // Without a rest no time is asked for: the clock of the node may be ahead.
    if (restMs === undefined || observation.kind !== 'succeeded') return PASS;
    const until = Date.parse(observation.since) + restMs;
    // A time that cannot be read must not hold anybody for ever.
    if (!(now < until)) return PASS;
    const message = `${target.name} rests for ${formatDuration(restMs)} before its slot is free`;
    return {
      kind: 'wait',
      reason: because('Resting', message),
      ends: 'its rest is over',
      recheckMs: until - now,
      until: rfc3339(until),
    };
  },
};
