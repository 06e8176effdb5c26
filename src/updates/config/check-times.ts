/**
 * Calculates when Refit asks a channel next: when a window opens, at a tick of a schedule, or after a pause that grows
 * with each failure.
 */
import { backoffDelay } from '../../util/clock.ts';
import { openAt } from '../../util/maintenance-windows.ts';
import type { Schedule } from './read-config.ts';

export interface CheckHistory {
  /** The time of the last check in milliseconds since the Unix epoch; undefined before the first check. */
  readonly last?: number | undefined;
  /** The number of failed checks in a row. */
  readonly failures: number;
  /** The time at which the UpdateConfig was created. */
  readonly created: number;
}

export interface CheckPace {
  readonly periodMs: number;
  readonly random: () => number;
}

/**
 * If a check at a tick was missed, Refit still makes it within this time after the tick, in milliseconds. A later check
 * would surprise people.
 */
export const CATCH_UP_MS = 10 * 60_000;
const RETRY_MS = 30_000;

/** Returns the time of the next check in milliseconds since the Unix epoch. It is in the past if a check is due. */
export function nextCheck(
  schedule: Schedule,
  history: CheckHistory,
  pace: CheckPace,
  now: number,
): number {
  const { last: recorded, failures, created } = history;
  const { periodMs, random } = pace;
  // If the clock of another leader was ahead, the recorded time is in the future and is ignored.
  const last = recorded !== undefined && recorded > now ? undefined : recorded;
  const retry =
    failures === 0
      ? undefined
      : (last ?? now) + backoffDelay(failures - 1, { base: RETRY_MS, cap: periodMs, random });
  if (schedule.kind === 'cron') {
    const from = Math.max(last ?? created, now - CATCH_UP_MS);
    const tick = schedule.cron.next(Math.min(from, now)) ?? Number.POSITIVE_INFINITY;
    return Math.max(tick, retry ?? tick);
  }
  if (last === undefined) return now;
  const regular = last + periodMs;
  const opening = openAt({ windows: [schedule.window], blackouts: [] }, last);
  const opensAt = opening.open ? regular : opening.opensAt;
  return Math.min(regular, opensAt, retry ?? regular);
}

/**
 * Returns the time at which the next window opens, or `now` if a window is open; undefined for a schedule without
 * windows.
 */
export function nextWindow(schedule: Schedule, now: number): number | undefined {
  if (schedule.kind === 'cron') return undefined;
  const opening = openAt({ windows: [schedule.window], blackouts: [] }, now);
  return opening.open ? now : opening.opensAt;
}
