/** Reads the windows and blackouts of an UpgradePolicy. */
import type { UpgradePolicySpec } from '../../api/refit/upgrade-policy.ts';
import { parseDuration } from '../../util/duration.ts';
import type { Blackout, MaintenanceWindow } from '../../util/maintenance-windows.ts';
import { isTimeZone } from '../../util/maintenance-windows.ts';

/** Notes an invalid field: its path in `spec`, what it must be, and what was found. */
export type Complain = (field: string, wanted: string, found: unknown) => void;

type Window = NonNullable<UpgradePolicySpec['windows']>[number];
type Stretch = NonNullable<UpgradePolicySpec['blackouts']>[number];

const WEEKDAYS = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'] as const;
const WEEK_MS = 7 * 24 * 60 * 60 * 1000;

/** Undefined if a field is invalid, which is noted. */
export function readWindow(window: Window, at: string, complain: Complain): MaintenanceWindow | undefined {
  const { days = [], start, length, timeZone } = window;
  const lengthMs = parseDuration(length);
  const isLength = lengthMs !== undefined && lengthMs <= WEEK_MS;
  if (!isLength) complain(`${at}.length`, 'a time above zero and up to 168h, such as 4h', length);
  if (!isKnown(timeZone, at, complain) || !isLength) return undefined;
  const [hour = 0, minute = 0] = start.split(':').map(Number);
  return { days: days.map((day) => WEEKDAYS.indexOf(day) + 1), startMinute: hour * 60 + minute, lengthMs, timeZone };
}

/** Undefined if a field is invalid, which is noted. */
export function readBlackout(stretch: Stretch, at: string, complain: Complain): Blackout | undefined {
  const { timeZone = 'UTC' } = stretch;
  if (!isKnown(timeZone, at, complain)) return undefined;
  const from = momentOf(stretch.from, timeZone, 0);
  if (from === undefined) complain(`${at}.from`, MOMENT, stretch.from);
  // The last day counts whole.
  const to = momentOf(stretch.to, timeZone, 1);
  if (to === undefined) complain(`${at}.to`, MOMENT, stretch.to);
  if (from === undefined || to === undefined) return undefined;
  if (from < to) return { from, to };
  complain(`${at}.to`, `after ${stretch.from}`, stretch.to);
  return undefined;
}

const MOMENT = 'a date of the calendar such as 2026-12-20, or a time such as 2026-12-20T18:00:00Z';

function isKnown(timeZone: string, at: string, complain: Complain): boolean {
  const known = isTimeZone(timeZone);
  if (!known) complain(`${at}.timeZone`, 'a time zone such as Europe/Berlin', timeZone);
  return known;
}

/** Milliseconds since the Unix epoch; of a date, the start of the day `daysAfter` days later. */
function momentOf(text: string, timeZone: string, daysAfter: number): number | undefined {
  try {
    if (text.includes('T')) return Temporal.Instant.from(text).epochMilliseconds;
    return Temporal.PlainDate.from(text).add({ days: daysAfter }).toZonedDateTime(timeZone).epochMilliseconds;
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
