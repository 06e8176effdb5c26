/** The time at which every test begins, and times around it. */
import { rfc3339 } from '../../../src/util/clock.ts';

/** Milliseconds since the epoch of 2026-11-20T08:00:00Z. */
export const T0 = Date.UTC(2026, 10, 20, 8);

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;

/** RFC 3339, that many milliseconds after the beginning. */
export function later(ms: number): string {
  return rfc3339(T0 + ms);
}
