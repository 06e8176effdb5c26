/** The time at which every test begins, and times around it. */
import { rfc3339 } from '../../../src/util/clock.ts';

/** 2026-11-20T08:00:00Z in milliseconds since the Unix epoch. */
export const T0 = Date.UTC(2026, 10, 20, 8);

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;

/** Returns the time `ms` milliseconds after the beginning, in RFC 3339. */
export function later(ms: number): string {
  return rfc3339(T0 + ms);
}
