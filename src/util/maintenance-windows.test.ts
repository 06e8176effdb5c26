/**
 * Tests windows and blackouts. Tables test the days on which clocks change. Everything else is compared with a
 * computation for each minute.
 */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { WHOLE } from '../../test/support/whole.ts';
import {
  isTimeZone,
  type MaintenanceWindow,
  nextStart,
  openAt,
  type Timetable,
  timeWithZone,
  zoneOf,
} from './maintenance-windows.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const at = (text: string): number => Date.parse(text);
const utc = (ms: number, length = 16): string => new Date(ms).toISOString().slice(0, length);

/** Returns a window that opens at `22:00` for this many hours on these days, or on every day if no day is given. */
function daily(
  start: string,
  hours: number,
  timeZone: string,
  days: readonly number[] = [],
): MaintenanceWindow {
  const [hour = 0, minute = 0] = start.split(':').map(Number);
  return { days, startMinute: hour * 60 + minute, lengthMs: hours * HOUR, timeZone };
}

const only = (...windows: readonly MaintenanceWindow[]): Timetable => ({ windows, blackouts: [] });

/**
 * Returns `open until …` or `closed until …` in UTC. `length` is the number of characters of the time. It selects
 * minutes or seconds.
 */
function said(timetable: Timetable, now: string, length = 16): string {
  const opening = openAt(timetable, at(now));
  return opening.open
    ? `open until ${utc(opening.until, length)}`
    : `closed until ${utc(opening.opensAt, length)}`;
}

const NIGHT = only(daily('22:00', 4, 'Europe/Berlin'));
const SUNDAY = only(daily('02:30', 2, 'Europe/Berlin', [7]));

/** A window in New York from 00:00:30 to 06:00:01. */
const MORNING = only({
  days: [7],
  startMinute: 0.5,
  endMinute: 6 * 60 + 1 / 60,
  lengthMs: 25 * HOUR,
  timeZone: 'America/New_York',
});
/** A window of at most six hours, also if the clock shows an hour twice. */
const SHORT = only({ ...daily('00:00', 6, 'America/New_York', [7]), endMinute: 6 * 60 });
const EVENING = only({ ...daily('22:00', 25, 'America/New_York', [7]), endMinute: 24 * 60 });

test.each<[string, Timetable, string, string]>([
  ['a start with seconds', MORNING, '2026-06-07T04:00:29Z', 'closed until 2026-06-07T04:00:30'],
  [
    'an end by the clock, in summer',
    MORNING,
    '2026-06-07T04:00:30Z',
    'open until 2026-06-07T10:00:01',
  ],
  ['its last moment', MORNING, '2026-06-07T10:00:00.999Z', 'open until 2026-06-07T10:00:01'],
  ['the moment after', MORNING, '2026-06-07T10:00:01Z', 'closed until 2026-06-14T04:00:30'],
  [
    'on the day that has an hour less',
    MORNING,
    '2026-03-08T05:01:00Z',
    'open until 2026-03-08T10:00:01',
  ],
  [
    'on the day that has an hour more',
    MORNING,
    '2026-11-01T04:01:00Z',
    'open until 2026-11-01T11:00:01',
  ],
  ['no longer than it may be', SHORT, '2026-11-01T04:01:00Z', 'open until 2026-11-01T10:00:00'],
  ['to the end of the day', EVENING, '2026-06-08T03:59:59Z', 'open until 2026-06-08T04:00:00'],
  ['and no longer', EVENING, '2026-06-08T04:00:00Z', 'closed until 2026-06-15T02:00:00'],
])('by the clock on the wall: %s', (_name, timetable, now, wanted) => {
  expect(said(timetable, now, 19)).toBe(wanted);
});

test.each<[string, Timetable, string, string]>([
  ['before it opens', NIGHT, '2026-06-10T19:59:00Z', 'closed until 2026-06-10T20:00'],
  ['the moment it opens', NIGHT, '2026-06-10T20:00:00Z', 'open until 2026-06-11T00:00'],
  [
    'a maintenance window that opens at 22:00 is still open after midnight',
    NIGHT,
    '2026-06-10T23:30:00Z',
    'open until 2026-06-11T00:00',
  ],
  ['the moment it closes', NIGHT, '2026-06-11T00:00:00Z', 'closed until 2026-06-11T20:00'],
  [
    'in winter an hour later in UTC',
    NIGHT,
    '2026-12-10T20:30:00Z',
    'closed until 2026-12-10T21:00',
  ],
  [
    'the night before clocks go forward',
    NIGHT,
    '2026-03-28T22:00:00Z',
    'open until 2026-03-29T01:00',
  ],
  ['the evening after it', NIGHT, '2026-03-29T20:00:00Z', 'open until 2026-03-30T00:00'],
  [
    'a window at 02:30 opens at 03:00 on the night when Berlin skips 02:30',
    SUNDAY,
    '2026-03-29T00:59:00Z',
    'closed until 2026-03-29T01:00',
  ],
  ['Berlin has skipped to 03:00', SUNDAY, '2026-03-29T01:00:00Z', 'open until 2026-03-29T03:00'],
  [
    'Berlin shows 02:30 twice: the first counts',
    SUNDAY,
    '2026-10-25T00:30:00Z',
    'open until 2026-10-25T02:30',
  ],
  [
    'the second 02:30 opens nothing',
    SUNDAY,
    '2026-10-25T02:30:00Z',
    'closed until 2026-11-01T01:30',
  ],
  [
    'New York skips 02:30',
    only(daily('02:30', 1, 'America/New_York')),
    '2026-03-08T06:59:00Z',
    'closed until 2026-03-08T07:00',
  ],
  [
    'a window at 01:30 opens at the first 01:30 on the night when New York shows it twice',
    only(daily('01:30', 1, 'America/New_York')),
    '2026-11-01T05:30:00Z',
    'open until 2026-11-01T06:30',
  ],
  [
    'Lord Howe goes back by half an hour',
    only(daily('01:45', 1, 'Australia/Lord_Howe')),
    '2026-04-04T14:45:00Z',
    'open until 2026-04-04T15:45',
  ],
  [
    'Lord Howe skips half an hour',
    only(daily('02:15', 1, 'Australia/Lord_Howe')),
    '2026-10-03T15:29:00Z',
    'closed until 2026-10-03T15:30',
  ],
  [
    'Apia left out a whole Friday',
    only(daily('12:00', 1, 'Pacific/Apia', [5])),
    '2011-12-29T12:00:00Z',
    'closed until 2012-01-05T22:00',
  ],
  [
    'Apia on the Saturday that followed a Thursday',
    only(daily('12:00', 1, 'Pacific/Apia')),
    '2011-12-30T09:59:00Z',
    'closed until 2011-12-30T22:00',
  ],
  [
    'a whole weekend',
    only(daily('22:00', 50, 'UTC', [5])),
    '2026-06-14T23:59:00Z',
    'open until 2026-06-15T00:00',
  ],
  [
    'two that meet are one',
    only(daily('20:00', 2, 'UTC'), daily('22:00', 2, 'UTC')),
    '2026-06-10T20:30:00Z',
    'open until 2026-06-11T00:00',
  ],
  [
    'the first of two that opens',
    only(daily('20:00', 1, 'UTC'), daily('04:00', 1, 'UTC')),
    '2026-06-10T23:00:00Z',
    'closed until 2026-06-11T04:00',
  ],
  [
    'a blackout that begins while it is open',
    { ...NIGHT, blackouts: [{ from: at('2026-06-10T22:00:00Z'), to: at('2026-06-12T00:00:00Z') }] },
    '2026-06-10T21:00:00Z',
    'open until 2026-06-10T22:00',
  ],
  [
    'a blackout over the next openings',
    { ...NIGHT, blackouts: [{ from: at('2026-06-10T22:00:00Z'), to: at('2026-06-12T20:30:00Z') }] },
    '2026-06-10T22:00:00Z',
    'closed until 2026-06-12T20:30',
  ],
  [
    'one blackout after the other',
    {
      windows: [],
      blackouts: [
        { from: at('2026-06-11T00:00:00Z'), to: at('2026-06-12T00:00:00Z') },
        { from: at('2026-06-10T00:00:00Z'), to: at('2026-06-11T00:00:00Z') },
      ],
    },
    '2026-06-10T01:00:00Z',
    'closed until 2026-06-12T00:00',
  ],
])('%s', (_, timetable, now, expected) => expect(said(timetable, now)).toBe(expected));

test('without windows it never closes', () => {
  expect(openAt(only(), 0)).toEqual({ open: true, until: Number.POSITIVE_INFINITY });
});

test('what is open all the time is open for far longer than any work takes', () => {
  const opening = openAt(only(daily('00:00', 24, 'Europe/Berlin')), at('2026-06-10T12:00:00Z'));
  expect(opening).toMatchObject({ open: true });
  expect(opening.open && opening.until).toBeGreaterThan(at('2026-06-20T12:00:00Z'));
});

test.each<[string, Timetable, number, string | undefined]>([
  ['it fits exactly', NIGHT, 2 * HOUR, '2026-06-10T22:00'],
  ['it would end a minute late: the next night', NIGHT, 2 * HOUR + MINUTE, '2026-06-11T20:00'],
  ['longer than any window', NIGHT, 5 * HOUR, undefined],
  [
    'longer than any window, whatever a blackout hides',
    { ...NIGHT, blackouts: [{ from: 0, to: at('2027-01-01T00:00:00Z') }] },
    5 * HOUR,
    undefined,
  ],
  [
    'two windows that meet are long enough together',
    only(daily('21:00', 1, 'UTC'), daily('22:00', 4, 'UTC')),
    5 * HOUR,
    '2026-06-11T21:00',
  ],
  [
    'a blackout cuts the window short',
    { ...NIGHT, blackouts: [{ from: at('2026-06-10T23:00:00Z'), to: at('2026-06-10T23:30:00Z') }] },
    2 * HOUR,
    '2026-06-11T20:00',
  ],
  ['no window at all', only(), 1000 * DAY, '2026-06-10T22:00'],
])('work may start: %s', (_, timetable, duration, expected) => {
  const start = nextStart(timetable, at('2026-06-10T22:00:00Z'), duration);
  expect(start === undefined ? undefined : utc(start)).toBe(expected);
});

test.each([
  ['Europe/Berlin', true],
  ['UTC', true],
  ['America/Argentina/Buenos_Aires', true],
  ['Europe/Atlantis', false],
  ['', false],
])('%s is a time zone: %s', (name, expected) => expect(isTimeZone(name)).toBe(expected));

/** The first days of spans of eleven days. The clock changes on the ninth day, in UTC or in local time. */
const SPANS = [
  ['Europe/Berlin', '2026-03-21'],
  ['Europe/Berlin', '2026-10-17'],
  ['America/New_York', '2026-02-28'],
  ['America/New_York', '2026-10-24'],
  ['Australia/Lord_Howe', '2026-03-27'],
  ['Australia/Lord_Howe', '2026-09-25'],
  ['Pacific/Apia', '2011-12-22'],
  ['Pacific/Apia', '2021-03-27'],
] as const;
const SPAN_MINUTES = 11 * 24 * 60;

interface Minute {
  readonly date: string;
  readonly weekday: number;
  readonly minute: number;
}

/**
 * The local time of each minute, computed with the time zone data of another part of the runtime.
 */
function wallClock(timeZone: string, from: number): Minute[] {
  const format = new Intl.DateTimeFormat('sv', {
    timeZone,
    dateStyle: 'short',
    timeStyle: 'short',
  });
  return Array.from({ length: SPAN_MINUTES }, (_, index) => {
    const [date = '', time = ''] = format.format(from + index * MINUTE).split(' ');
    const [hour = 0, minute = 0] = time.split(':').map(Number);
    return {
      date,
      weekday: new Date(`${date}T00:00:00Z`).getUTCDay() || 7,
      minute: hour * 60 + minute,
    };
  });
}

const CLOCKS = SPANS.map(([timeZone, day]) => {
  const from = at(`${day}T00:00:00Z`);
  return { timeZone, from, minutes: wallClock(timeZone, from) };
});

/** Returns for each minute whether a window that opened on a day of the span is open. */
function truth(
  minutes: readonly Minute[],
  { days, startMinute, lengthMs }: MaintenanceWindow,
): boolean[] {
  const open = minutes.map(() => false);
  const opened = new Set<string>([minutes[0]?.date ?? '']);
  for (const [index, { date, weekday, minute }] of minutes.entries()) {
    if (opened.has(date) || minute < startMinute) continue;
    opened.add(date);
    if (days.length === 0 || days.includes(weekday))
      open.fill(true, index, index + lengthMs / MINUTE);
  }
  return open;
}

const windowsIn = (timeZone: string): fc.Arbitrary<MaintenanceWindow> =>
  fc.record({
    days: fc.uniqueArray(fc.integer({ min: 1, max: 7 }), { maxLength: 7 }),
    // Most of the times are in the hours in which clocks change.
    startMinute: fc.oneof(fc.integer({ min: 0, max: 240 }), fc.integer({ min: 0, max: 1439 })),
    lengthMs: fc.integer({ min: 1, max: 48 * 60 }).map((minutes) => minutes * MINUTE),
    timeZone: fc.constant(timeZone),
  });

const situations = fc.constantFrom(...CLOCKS).chain(({ timeZone, from, minutes }) =>
  fc.record({
    from: fc.constant(from),
    minutes: fc.constant(minutes),
    windows: fc.array(windowsIn(timeZone), { minLength: 1, maxLength: 3 }),
    blackouts: fc.array(
      fc
        .tuple(fc.integer({ min: 0, max: SPAN_MINUTES }), fc.integer({ min: 1, max: 2000 }))
        .map(([start, length]) => ({
          from: from + start * MINUTE,
          to: from + (start + length) * MINUTE,
        })),
      { maxLength: 3 },
    ),
    // Windows that opened before the third day have closed by the fifth day.
    looks: fc.array(fc.integer({ min: 4 * 24 * 60, max: SPAN_MINUTES - 1 }), {
      minLength: 40,
      maxLength: 40,
    }),
    durationMs: fc.integer({ min: 1, max: 3000 }).map((minutes) => minutes * MINUTE),
  }),
);

describe('minute by minute', () => {
  test('open is what the wall clock says, until the very minute that it says', () => {
    fc.assert(
      fc.property(situations, ({ from, minutes, windows, blackouts, looks }) => {
        const open = truthOf(from, minutes, { windows, blackouts });
        for (const look of looks) {
          const opening = openAt({ windows, blackouts }, from + look * MINUTE);
          expect(opening.open).toBe(open[look]);
          const change = open.findIndex((each, index) => index > look && each !== open[look]);
          const told = opening.open ? opening.until : opening.opensAt;
          if (change >= 0) expect(utc(told)).toBe(utc(from + change * MINUTE));
          else expect(told).toBeGreaterThanOrEqual(from + SPAN_MINUTES * MINUTE);
        }
      }),
      { numRuns: WHOLE ? 150 : 50 },
    );
  });

  test('work starts in the first minute from which all of it fits', () => {
    fc.assert(
      fc.property(situations, ({ from, minutes, windows, blackouts, looks, durationMs }) => {
        const closes = closings(truthOf(from, minutes, { windows, blackouts }));
        const fits = (index: number): boolean =>
          ((closes[index] ?? 0) - index) * MINUTE >= durationMs;
        for (const look of looks.slice(0, 10)) {
          const start = nextStart({ windows, blackouts }, from + look * MINUTE, durationMs);
          const first = minutes.findIndex((_, index) => index >= look && fits(index));
          if (first >= 0) expect(start).toBe(from + first * MINUTE);
          // A window that opens in the span may end after it.
          else if (start !== undefined)
            expect(start + durationMs).toBeGreaterThan(from + SPAN_MINUTES * MINUTE);
        }
      }),
      { numRuns: WHOLE ? 150 : 50 },
    );
  });
});

function truthOf(
  from: number,
  minutes: readonly Minute[],
  { windows, blackouts }: Timetable,
): boolean[] {
  const each = windows.map((window) => truth(minutes, window));
  return minutes.map((_, index) => {
    const time = from + index * MINUTE;
    return (
      each.some((open) => open[index]) &&
      !blackouts.some((dark) => dark.from <= time && time < dark.to)
    );
  });
}

/** Maps each minute to the minute in which the window closes, or to itself if no window is open. */
function closings(open: readonly boolean[]): number[] {
  const closes = open.map((_, index) => index);
  for (let index = open.length - 1; index >= 0; index--)
    if (open[index]) closes[index] = closes[index + 1] ?? open.length;
  return closes;
}

test.each<[string, readonly string[], string | undefined]>([
  ['2026-11-20T22:00:00Z', ['Europe/Berlin'], '23:00 Europe/Berlin'],
  ['2026-11-20T23:30:00Z', ['Europe/Berlin', 'Europe/Berlin'], '2026-11-21 00:30 Europe/Berlin'],
  ['2026-11-20T22:00:00Z', ['UTC'], undefined],
  ['2026-11-20T22:00:00Z', ['UTC', 'Europe/Berlin'], undefined],
  ['2026-11-20T22:00:00Z', [], undefined],
])('%s by the clock of windows in %j', (time, zones, shown) => {
  const windows = zones.map((timeZone) => ({ days: [], startMinute: 0, lengthMs: 1, timeZone }));
  const beside = shown === undefined ? '' : ` (${shown})`;
  expect(timeWithZone(Date.parse(time), zoneOf(windows))).toBe(`${time}${beside}`);
});
