/** A clock on which no wait takes time: it jumps to the end of each. */
import type { Clock } from '../../../src/util/clock.ts';

export function jumpingClock(): Clock {
  let now = 0;
  return {
    now: () => now,
    monotonic: () => now,
    schedule(ms, callback) {
      now += ms;
      queueMicrotask(callback);
      return () => undefined;
    },
  };
}
