/** Owns when work may start: windows that recur in a time zone, and stretches of time in which nothing may. */

/**
 * Opens on each of `days` when the clock on the wall first shows `startMinute` or later, for `lengthMs` that really pass, or
 * until that clock shows `endMinute`.
 */
export interface MaintenanceWindow {
  /** 1 for Monday to 7 for Sunday; every day where there is none. */
  readonly days: readonly number[];
  /** Minutes since midnight, below 1440; seconds are a fraction. */
  readonly startMinute: number;
  /** At most a week. */
  readonly lengthMs: number;
  /** After `startMinute`, and at most 1440, which is the end of the day: where it is given it counts, within `lengthMs`. */
  readonly endMinute?: number;
  /** Name of an IANA zone, such as `Europe/Berlin`. */
  readonly timeZone: string;
}

/** Milliseconds since the Unix epoch; over at `to`. */
export interface Blackout {
  readonly from: number;
  readonly to: number;
}

/** Without a window it is open whenever there is no blackout. */
export interface Timetable {
  readonly windows: readonly MaintenanceWindow[];
  readonly blackouts: readonly Blackout[];
}

/** In milliseconds since the Unix epoch. What stays open for longer than HORIZON_MS may be told as closing then. */
export type Opening =
  | { readonly open: true; readonly until: number }
  | { readonly open: false; readonly opensAt: number };

const DAY_MINUTES = 24 * 60;
const DAY_MS = 24 * 60 * 60 * 1000;
/** Every window opens twice within it, days that a time zone leaves out included. */
const HORIZON_MS = 15 * DAY_MS;

/** Open at its end is closed: a window of one hour from 22:00 is closed at 23:00. */
export function openAt(timetable: Timetable, now: number): Opening {
  const { from, until } = stretchFrom(timetable, now);
  return from === now ? { open: true, until } : { open: false, opensAt: from };
}

/**
 * When work that takes `durationMs` may start at the earliest, so that it is over before the window closes: `now`, later,
 * or undefined where no window is long enough.
 */
export function nextStart(timetable: Timetable, now: number, durationMs: number): number | undefined {
  // After the last blackout every week is like the next one.
  const end = Math.max(now, ...timetable.blackouts.map(({ to }) => to)) + HORIZON_MS;
  for (let time = now; time <= end; ) {
    const { from, until } = stretchFrom(timetable, time);
    if (until - from >= durationMs) return from;
    time = until;
  }
  return undefined;
}

export function isTimeZone(name: string): boolean {
  try {
    return Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(name).timeZoneId !== '';
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

/** The first stretch of open time that is not over at `time`, without what of it lies before. */
function stretchFrom(
  { windows, blackouts }: Timetable,
  time: number,
): { readonly from: number; readonly until: number } {
  let from = time;
  for (;;) {
    const dark = blackouts.find((each) => each.from <= from && from < each.to);
    const until = dark ? undefined : closingOf(windows, from);
    if (until !== undefined) {
      const next = blackouts.map((each) => each.from).filter((start) => start > from);
      return { from, until: Math.min(until, ...next) };
    }
    from = dark ? dark.to : Math.min(...windows.map((window) => openingAfter(window, from)));
  }
}

/** When windows that follow on each other without a gap close; undefined where none is open at `time`. */
function closingOf(windows: readonly MaintenanceWindow[], time: number): number | undefined {
  if (windows.length === 0) return Number.POSITIVE_INFINITY;
  let until = time;
  for (;;) {
    const later = Math.max(...windows.map((window) => closingOfOne(window, until) ?? until));
    if (later === until || later > time + HORIZON_MS) return later === time ? undefined : later;
    until = later;
  }
}

function closingOfOne(window: MaintenanceWindow, time: number): number | undefined {
  const ends = startsBetween(window, time - window.lengthMs, time)
    .filter((start) => start <= time)
    .map((start) => endOf(window, start));
  return ends.filter((end) => time < end).at(-1);
}

function endOf({ lengthMs, endMinute, timeZone }: MaintenanceWindow, start: number): number {
  if (endMinute === undefined) return start + lengthMs;
  const day = dateAt(start, timeZone).add({ days: endMinute === DAY_MINUTES ? 1 : 0 });
  const end = day.toPlainDateTime(timeOf(endMinute % DAY_MINUTES)).toZonedDateTime(timeZone);
  return Math.min(end.epochMilliseconds, start + lengthMs);
}

function openingAfter(window: MaintenanceWindow, time: number): number {
  return startsBetween(window, time, time + HORIZON_MS).find((start) => start > time) ?? Number.POSITIVE_INFINITY;
}

/** In order; those of the days around both ends may lie outside. */
function startsBetween({ days, startMinute, timeZone }: MaintenanceWindow, from: number, to: number): number[] {
  const time = timeOf(startMinute);
  const last = dateAt(to, timeZone);
  const starts: number[] = [];
  for (let day = dateAt(from, timeZone); Temporal.PlainDate.compare(day, last) <= 0; day = day.add({ days: 1 })) {
    const start = days.length === 0 || days.includes(day.dayOfWeek) ? startOn(day, time, timeZone) : undefined;
    if (start !== undefined) starts.push(start);
  }
  return starts;
}

function timeOf(minute: number): Temporal.PlainTime {
  return new Temporal.PlainTime(Math.floor(minute / 60), Math.floor(minute % 60), Math.round((minute % 1) * 60));
}

/** Of two moments that the clock shows `time` the first; where it skips it, the moment after the skip. */
function startOn(day: Temporal.PlainDate, time: Temporal.PlainTime, timeZone: string): number | undefined {
  const wanted = day.toPlainDateTime(time);
  const before = wanted.toZonedDateTime(timeZone, { disambiguation: 'earlier' });
  if (before.toPlainDateTime().equals(wanted)) return before.epochMilliseconds;
  const after = before.getTimeZoneTransition('next');
  // A zone that moves across the date line leaves out a whole day.
  return after?.toPlainDate().equals(day) === true ? after.epochMilliseconds : undefined;
}

function dateAt(time: number, timeZone: string): Temporal.PlainDate {
  return Temporal.Instant.fromEpochMilliseconds(time).toZonedDateTimeISO(timeZone).toPlainDate();
}
