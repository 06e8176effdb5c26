/** Computes when work may start, from windows that recur in a time zone, and from blackouts. */
import { rfc3339 } from './clock.ts';
import { ifPossible } from './errors.ts';
import { onceForEachAmong } from './memo.ts';

/**
 * A window that opens on `days` at local `startMinute`. It closes after `lengthMs` of real time, or
 * at local `endMinute`.
 */
export interface MaintenanceWindow {
  /**
   * The days of the week, from 1 for Monday to 7 for Sunday. If the list is empty, the window opens
   * every day.
   */
  readonly days: readonly number[];
  /** Minutes since midnight, below 1440. Seconds are written as a fraction. */
  readonly startMinute: number;
  /** The length in milliseconds, at most a week. */
  readonly lengthMs: number;
  /**
   * Minutes since midnight, more than `startMinute` and at most 1440 (the end of the day). The window closes at this
   * time, or after `lengthMs` if that is earlier.
   */
  readonly endMinute?: number;
  /** The name of an IANA time zone, such as `Europe/Berlin`. */
  readonly timeZone: string;
}

/** A time without work, in milliseconds since the Unix epoch. `to` is exclusive. */
export interface Blackout {
  readonly from: number;
  readonly to: number;
}

/** Windows and blackouts together. A timetable without windows is open whenever there is no blackout. */
export interface Timetable {
  readonly windows: readonly MaintenanceWindow[];
  readonly blackouts: readonly Blackout[];
}

/**
 * Says whether a timetable is open. If it is open, `until` is the time at which it closes. If it is closed, `opensAt`
 * is the time at which it opens. Both are in milliseconds since the Unix epoch. `until` may be earlier than the real
 * end if the real end is more than HORIZON_MS away.
 */
export type Opening =
  | { readonly open: true; readonly until: number }
  | { readonly open: false; readonly opensAt: number };

const DAY_MINUTES = 24 * 60;
/** Milliseconds within which every window opens twice, even if a time zone skips a day. */
const HORIZON_MS = 15 * DAY_MINUTES * 60_000;

/**
 * Returns whether the timetable is open at `now`. The end of a window is exclusive: a window of one
 * hour from 22:00 is closed at 23:00.
 */
export function openAt(timetable: Timetable, now: number): Opening {
  const { from, until } = stretchAt(timetable, now, 0);
  return from === now ? { open: true, until } : { open: false, opensAt: from };
}

/**
 * Returns the earliest start of work that must end before its window closes; undefined if no window
 * is long enough.
 */
export function nextStart(
  timetable: Timetable,
  now: number,
  durationMs: number,
): number | undefined {
  // The search ends HORIZON_MS after the last blackout, because from then on every week has the same windows.
  const end = Math.max(now, ...timetable.blackouts.map(({ to }) => to)) + HORIZON_MS;
  let time = now;
  for (let index = 0; time <= end; index++) {
    const { from, until } = stretchAt(timetable, now, index);
    if (until - from >= durationMs) return from;
    time = until;
  }
  return undefined;
}

type Stretch = ReturnType<typeof stretchFrom>;

/**
 * Caches the periods in which the timetable is open, for each time from which on a caller asks for them. Thousands of
 * targets ask for them in one turn, and calculations with calendars are slow.
 */
const stretchesSince = onceForEachAmong(
  (_timetable: Timetable, _now: readonly number[]): Stretch[] => [],
);

/**
 * Returns one of the periods from `now` on in which the timetable is open. `index` is the position of the period in
 * order of time, from 0.
 */
function stretchAt(timetable: Timetable, now: number, index: number): Stretch {
  const known = stretchesSince(timetable, [now]);
  let stretch = known[index];
  while (stretch === undefined) {
    known.push(stretchFrom(timetable, known.at(-1)?.until ?? now));
    stretch = known[index];
  }
  return stretch;
}

/** Returns the time zone of the windows; undefined if the windows have several time zones, or if the time zone is UTC. */
export function zoneOf(windows: readonly MaintenanceWindow[]): string | undefined {
  const [timeZone, ...others] = new Set(windows.map((each) => each.timeZone));
  return others.length > 0 || timeZone === 'UTC' ? undefined : timeZone;
}

/**
 * Returns the time in UTC, followed by the local time if there is a zone: `2026-11-20T22:00:00Z
 * (23:00 Europe/Berlin)`.
 */
export function timeWithZone(time: number, timeZone: string | undefined): string {
  const utc = rfc3339(time);
  return timeZone === undefined ? utc : `${utc} (${localTime(time, timeZone)})`;
}

/** Returns the local time, such as `23:00 Europe/Berlin`. The local date is added if it differs from the date in UTC. */
function localTime(time: number, timeZone: string): string {
  const there = Temporal.Instant.fromEpochMilliseconds(time).toZonedDateTimeISO(timeZone);
  const isSameDay = there.toPlainDate().equals(dateAt(time, 'UTC'));
  const clock = there.toPlainTime().toString({ smallestUnit: 'minute' });
  return `${isSameDay ? '' : `${there.toPlainDate().toString()} `}${clock} ${timeZone}`;
}

export function isTimeZone(name: string): boolean {
  return (
    ifPossible(() => Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(name)) !==
    undefined
  );
}

/**
 * Returns the open period that includes `time`, or else the next open period. The returned period does not start before
 * `time`.
 */
function stretchFrom({ windows, blackouts }: Timetable, time: number) {
  let from = time;
  for (;;) {
    const dark = blackouts.find((each) => each.from <= from && from < each.to);
    const until = dark ? undefined : closingOf(windows, from);
    if (until !== undefined) {
      const next = blackouts.map((each) => each.from).filter((start) => start > from);
      return { from, until: Math.min(until, ...next) };
    }
    const all = windows.flatMap(
      (each) => startsBetween(each, from, from + HORIZON_MS).find((at) => at > from) ?? [],
    );
    from = dark ? dark.to : Math.min(...all);
  }
}

/**
 * Returns the time at which the open window closes; undefined if no window is open at `time`. If a second window opens
 * before or when the first window closes, the result is the time at which the second window closes, and so on.
 */
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
  return [...ends].findLast((end) => time < end);
}

function endOf({ lengthMs, endMinute, timeZone }: MaintenanceWindow, start: number): number {
  if (endMinute === undefined) return start + lengthMs;
  const day = dateAt(start, timeZone).add({ days: endMinute === DAY_MINUTES ? 1 : 0 });
  const end = day.toPlainDateTime(timeOf(endMinute % DAY_MINUTES)).toZonedDateTime(timeZone);
  return Math.min(end.epochMilliseconds, start + lengthMs);
}

/**
 * Yields the starts of a window in order. The first and the last may be outside of the range. It is
 * a generator, because a caller that needs only the next start must not compute all of them.
 */
function* startsBetween(
  { days, startMinute, timeZone }: MaintenanceWindow,
  from: number,
  to: number,
) {
  const time = timeOf(startMinute);
  const last = dateAt(to, timeZone);
  for (
    let day = dateAt(from, timeZone);
    Temporal.PlainDate.compare(day, last) <= 0;
    day = day.add({ days: 1 })
  ) {
    const start =
      days.length === 0 || days.includes(day.dayOfWeek) ? startOn(day, time, timeZone) : undefined;
    if (start !== undefined) yield start;
  }
}

function timeOf(minute: number): Temporal.PlainTime {
  return new Temporal.PlainTime(
    Math.floor(minute / 60),
    Math.floor(minute % 60),
    Math.round((minute % 1) * 60),
  );
}

/**
 * Returns the first moment when the clock shows `time`. If the clock skips that time, it returns
 * the moment after the skip. Undefined if the zone skips the whole day.
 */
function startOn(
  day: Temporal.PlainDate,
  time: Temporal.PlainTime,
  timeZone: string,
): number | undefined {
  const wanted = day.toPlainDateTime(time);
  const before = wanted.toZonedDateTime(timeZone, { disambiguation: 'earlier' });
  if (before.toPlainDateTime().equals(wanted)) return before.epochMilliseconds;
  const after = before.getTimeZoneTransition('next');
  // The result is on another day if the zone moved across the date line, and so skipped the whole day.
  return after?.toPlainDate().equals(day) === true ? after.epochMilliseconds : undefined;
}

function dateAt(time: number, timeZone: string): Temporal.PlainDate {
  return Temporal.Instant.fromEpochMilliseconds(time).toZonedDateTimeISO(timeZone).toPlainDate();
}
