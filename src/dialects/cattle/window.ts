/** Owns when a Plan may begin, as the original reads its window: days, and times of day on the clock of a zone. */
import type { CattlePlan } from '../../api/cattle/plan.ts';
import { isTimeZone, type MaintenanceWindow } from '../../util/maintenance-windows.ts';

type Window = NonNullable<NonNullable<CattlePlan['spec']>['window']>;

/** By their first two letters; numbered as in ISO 8601. */
const DAYS: Readonly<Record<string, number>> = { mo: 1, tu: 2, we: 3, th: 4, fr: 5, sa: 6, su: 7 };
const DAY_MINUTES = 24 * 60;
/** Milliseconds: no day is longer. */
const LONGEST_MS = 26 * 60 * 60 * 1000;
/** It is open until the end of the second that is named. */
const SECOND = 1 / 60;

/** All stretches of a week; or what is wrong with the window, as text. */
export function windowsOf({
  days = [],
  startTime = '',
  endTime = '',
  timeZone = '',
}: Window): MaintenanceWindow[] | string {
  const [start, end] = [minuteOf(startTime), minuteOf(endTime)];
  // The zone of the original's container is UTC.
  const zone = timeZone === '' || timeZone === 'Local' ? 'UTC' : timeZone;
  const faults = [
    ...(start === undefined ? [`startTime "${startTime}" is no time of day`] : []),
    ...(end === undefined ? [`endTime "${endTime}" is no time of day`] : []),
    ...(isTimeZone(zone) ? [] : [`timeZone "${timeZone}" is not known`]),
    ...(days.length === 0 ? ['it names no day, and would never open'] : []),
  ];
  if (start === undefined || end === undefined || faults.length > 0) return faults.join(', ');
  const stretch = (startMinute: number, endMinute: number): MaintenanceWindow => ({
    days: days.map(dayOf),
    startMinute,
    endMinute: Math.min(endMinute, DAY_MINUTES),
    lengthMs: LONGEST_MS,
    timeZone: zone,
  });
  // What goes past midnight is asked of the day that it is now: its morning is that of the same day, and not of the next one.
  if (start > end) return [stretch(0, end + SECOND), stretch(start, DAY_MINUTES)];
  return [stretch(start, end + SECOND)];
}

function dayOf(day: string): number {
  return /^\d$/.test(day) ? ((Number(day) + 6) % 7) + 1 : (DAYS[day.slice(0, 2)] ?? 0);
}

/** Minutes since midnight of `9:30`, `09:30:15`, `21`, `9pm`, `09pm` or `09:30pm`; undefined where the original knows no such time. */
function minuteOf(text: string): number | undefined {
  const [, hour24, minute24 = '0', second = '0'] = /^(\d{1,2})(?::(\d\d)(?::(\d\d))?)?$/.exec(text) ?? [];
  if (hour24 !== undefined) return clock(Number(hour24), Number(minute24), Number(second));
  const [, long, minute12 = '0', short, half] = /^(?:(\d\d):(\d\d)|(\d{1,2}))([ap]m)$/.exec(text) ?? [];
  const hour12 = Number(long ?? short);
  if (half === undefined || hour12 > 12) return undefined;
  return clock((hour12 % 12) + (half === 'pm' ? 12 : 0), Number(minute12), 0);
}

function clock(hour: number, minute: number, second: number): number | undefined {
  return hour < 24 && minute < 60 && second < 60 ? hour * 60 + minute + second / 60 : undefined;
}
