/** Reads the maintenance window of a Plan as the original does: days, and times of day in a time zone. */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { isTimeZone, type MaintenanceWindow } from '../../../util/maintenance-windows.ts';
import { ownMember } from '../../../util/own-member.ts';

type Window = NonNullable<NonNullable<CattlePlan['spec']>['window']>;

/** The ISO 8601 numbers of the days, by their first two letters. */
const DAYS: Readonly<Record<string, number>> = { mo: 1, tu: 2, we: 3, th: 4, fr: 5, sa: 6, su: 7 };
const DAY_MINUTES = 24 * 60;
/** The length of a window in milliseconds. It is longer than any day, so a window closes only at its end minute. */
const LONGEST_MS = 26 * 60 * 60 * 1000;
/** One second in minutes. It is added to `endTime`, because the window stays open until the end of that second. */
const SECOND = 1 / 60;

/** Returns the times of a week at which the window is open, or a text that says what is wrong with its fields. */
export function windowsOf(window: Window): MaintenanceWindow[] | string {
  const { days = [], startTime = '', endTime = '', timeZone = '' } = window;
  const start = minuteOf(startTime);
  const end = minuteOf(endTime);
  // The container of the original has no time zone, so its local time is UTC.
  const zone = timeZone === '' || timeZone === 'Local' ? 'UTC' : timeZone;
  const faults = [
    ...(start === undefined
      ? [`startTime "${startTime}" is not a time of day; use for example 22:00`]
      : []),
    ...(end === undefined
      ? [`endTime "${endTime}" is not a time of day; use for example 04:00`]
      : []),
    ...(isTimeZone(zone)
      ? []
      : [`timeZone "${timeZone}" is unknown; use for example Europe/Berlin`]),
    ...(days.length === 0
      ? ['days is empty, so the window never opens; use for example ["sa", "su"]']
      : []),
  ];
  if (start === undefined || end === undefined || faults.length > 0) return faults.join('; ');
  const stretch = (startMinute: number, endMinute: number): MaintenanceWindow => ({
    days: days.map(dayOf),
    startMinute,
    endMinute: Math.min(endMinute, DAY_MINUTES),
    lengthMs: LONGEST_MS,
    timeZone: zone,
  });
  // For a window over midnight, the original controller compares the current day also after midnight. So the window is
  // open in the morning hours of the listed days themselves, and not in the morning hours of the following days.
  if (start > end) return [stretch(0, end + SECOND), stretch(start, DAY_MINUTES)];
  return [stretch(start, end + SECOND)];
}

/** Returns the ISO 8601 number of a day. Plans name days by words, or by numbers from 0 for Sunday. */
function dayOf(day: string): number {
  if (/^\d$/.test(day)) return ((Number(day) + 6) % 7) + 1;
  return ownMember(DAYS, day.slice(0, 2)) ?? 0;
}

/**
 * Returns the minutes since midnight of `9:30`, `09:30:15`, `21`, `9pm`, `09pm` or `09:30pm`; undefined for forms that
 * the original rejects.
 */
function minuteOf(text: string): number | undefined {
  const [, hour24, minute24 = '0', second = '0'] =
    /^(\d{1,2})(?::(\d\d)(?::(\d\d))?)?$/.exec(text) ?? [];
  if (hour24 !== undefined) return clock(Number(hour24), Number(minute24), Number(second));
  const [, long, minute12 = '0', short, half] =
    /^(?:(\d\d):(\d\d)|(\d{1,2}))([ap]m)$/.exec(text) ?? [];
  const hour12 = Number(long ?? short);
  if (half === undefined || hour12 > 12) return undefined;
  return clock((hour12 % 12) + (half === 'pm' ? 12 : 0), Number(minute12), 0);
}

function clock(hour: number, minute: number, second: number): number | undefined {
  return hour < 24 && minute < 60 && second < 60 ? hour * 60 + minute + second / 60 : undefined;
}
