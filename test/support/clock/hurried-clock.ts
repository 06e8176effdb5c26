/** Tells the true time, but pauses are over sooner: seconds in milliseconds. */
import { type Clock, systemClock } from '../../../src/util/clock.ts';

/** Each pause takes `1 / factor` of its time. */
export function hurriedClock(factor: number): Clock {
  return {
    ...systemClock,
    schedule: (ms, callback) => systemClock.schedule(ms / factor, callback),
  };
}
