/** When a channel is asked next: at windows and at ticks of a schedule, sooner or later after a failure. */
import { backoffDelay } from '../../util/clock.ts';
import { openAt } from '../../util/maintenance-windows.ts';
import type { Schedule } from './read-config.ts';

export interface CheckHistory {
  /** Milliseconds since the Unix epoch; undefined before the first check. */
  readonly last?: number | undefined;
  /** Failed checks in a row. */
  readonly failures: number;
  /** Since when the UpdateConfig exists. */
  readonly created: number;
}

export interface CheckPace {
  readonly periodMs: number;
  readonly random: () => number;
}

/** A tick that nobody heard is made up for so long: later it would surprise people. */
export const CATCH_UP_MS = 10 * 60_000;
const RETRY_MS = 30_000;

/** Milliseconds since the Unix epoch; in the past when a check is due. */
export function nextCheck(
  schedule: Schedule,
  history: CheckHistory,
  pace: CheckPace,
  now: number,
): number {
  const { last: recorded, failures, created } = history;
  const { periodMs, random } = pace;
  // The clock of another leader may have been ahead.
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

/** When the window opens next, or has opened; undefined for a schedule without windows. */
export function nextWindow(schedule: Schedule, now: number): number | undefined {
  if (schedule.kind === 'cron') return undefined;
  const opening = openAt({ windows: [schedule.window], blackouts: [] }, now);
  return opening.open ? now : opening.opensAt;
}
