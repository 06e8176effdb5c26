/** Proves when windows are open, as the original reads them, and which windows are invalid. */
import { describe, expect, test } from 'vitest';
import { openAt } from '../../../util/maintenance-windows.ts';
import { windowsOf } from './window.ts';

type Window = Parameters<typeof windowsOf>[0];

/** Reports whether the window is open at this time. The date 2026-11-20 is a Friday. */
function isOpen(window: Window, at: string): boolean {
  const windows = windowsOf(window);
  if (typeof windows === 'string') throw new Error(windows);
  return openAt({ windows, blackouts: [] }, Date.parse(at)).open;
}

const OFFICE: Window = { days: ['fr'], startTime: '9:00', endTime: '17:00' };
/**
 * The original compares the current weekday with `days`, both before and after midnight. So this window is open on two
 * parts of Friday: until 06:00 and from 22:00.
 */
const NIGHT: Window = { days: ['fri'], startTime: '22:00', endTime: '06:00' };
const SECOND_AT_NINE: Window = { ...OFFICE, endTime: '9:00' };
const BERLIN: Window = { ...OFFICE, timeZone: 'Europe/Berlin' };

test.each<[string, Window, string, boolean]>([
  ['before it', OFFICE, '2026-11-20T08:59:59Z', false],
  ['its first moment', OFFICE, '2026-11-20T09:00:00Z', true],
  ['the second that it names last', OFFICE, '2026-11-20T17:00:00.999Z', true],
  ['after that second', OFFICE, '2026-11-20T17:00:01Z', false],
  ['another day', OFFICE, '2026-11-21T12:00:00Z', false],
  ['the morning of a night', NIGHT, '2026-11-20T03:00:00Z', true],
  ['its last second', NIGHT, '2026-11-20T06:00:00Z', true],
  ['the day between', NIGHT, '2026-11-20T12:00:00Z', false],
  ['the evening of a night', NIGHT, '2026-11-20T23:59:59Z', true],
  ['the morning after it, which is of another day', NIGHT, '2026-11-21T03:00:00Z', false],
  ['before a window of one second', SECOND_AT_NINE, '2026-11-20T08:00:00Z', false],
  ['that second', SECOND_AT_NINE, '2026-11-20T09:00:00.5Z', true],
  ['after a window of one second', SECOND_AT_NINE, '2026-11-20T10:00:00Z', false],
  ['in a zone', BERLIN, '2026-11-20T08:00:00Z', true],
  ['in that zone it is over', BERLIN, '2026-11-20T16:30:00Z', false],
  ['Local is UTC', { ...OFFICE, timeZone: 'Local' }, '2026-11-20T09:00:00Z', true],
  ['0 is Sunday', { ...OFFICE, days: ['0'] }, '2026-11-22T12:00:00Z', true],
  ['6 is Saturday', { ...OFFICE, days: ['6'] }, '2026-11-21T12:00:00Z', true],
  [
    'the whole day',
    { days: ['friday'], startTime: '00:00:00', endTime: '23:59:59' },
    '2026-11-20T23:59:59.5Z',
    true,
  ],
])('%s: open %s', (_name, window, at, wanted) => {
  expect(isOpen(window, at)).toBe(wanted);
});

test('by day, in every way to write it', () => {
  const names = [
    ['0', 'su', 'sun', 'sunday'],
    ['1', 'mo', 'mon', 'monday'],
    ['2', 'tu', 'tue', 'tuesday'],
    ['3', 'we', 'wed', 'wednesday'],
    ['4', 'th', 'thu', 'thursday'],
    ['5', 'fr', 'fri', 'friday'],
    ['6', 'sa', 'sat', 'saturday'],
  ];
  for (const [index, same] of names.entries()) {
    for (const day of same) {
      const open = names.map((_, offset) =>
        isOpen({ ...OFFICE, days: [day] }, `2026-11-${15 + offset}T12:00:00Z`),
      );
      expect([day, open.indexOf(true), open.filter(Boolean).length]).toEqual([day, index, 1]);
    }
  }
});

describe('times of day', () => {
  test.each([
    ['9:30', '09:30:00'],
    ['09:30', '09:30:00'],
    ['09:30:15', '09:30:15'],
    ['21', '21:00:00'],
    ['9pm', '21:00:00'],
    ['09am', '09:00:00'],
    ['09:30pm', '21:30:00'],
    ['12am', '00:00:00'],
    ['12pm', '12:00:00'],
  ])('%s is %s', (text, first) => {
    const window: Window = { ...OFFICE, startTime: text, endTime: '23:59:59' };
    const at = Date.parse(`2026-11-20T${first}Z`);
    const before = new Date(at - 1).toISOString();
    expect([isOpen(window, before), isOpen(window, new Date(at).toISOString())]).toEqual([
      false,
      true,
    ]);
  });

  test.each([
    '',
    '24:00',
    '9:60',
    '9:5',
    '9:30pm',
    '13pm',
    '9 pm',
    '09:30:60',
    'noon',
    '-1:00',
    '109pm',
    '9pmx',
  ])('%j is none', (text) => {
    expect(windowsOf({ ...OFFICE, startTime: text })).toBe(
      `startTime "${text}" is not a time of day; use for example 22:00`,
    );
  });
});

test.each<[string, Window, string]>([
  [
    'an end',
    { ...OFFICE, endTime: '25' },
    'endTime "25" is not a time of day; use for example 04:00',
  ],
  [
    'a zone',
    { ...OFFICE, timeZone: 'Mars/Olympus' },
    'timeZone "Mars/Olympus" is unknown; use for example Europe/Berlin',
  ],
  [
    'no day',
    { ...OFFICE, days: [] },
    'days is empty, so the window never opens; use for example ["sa", "su"]',
  ],
  [
    'no field at all',
    {},
    'startTime "" is not a time of day; use for example 22:00; endTime "" is not a time of day; use for example 04:00; days is empty, so the window never opens; use for example ["sa", "su"]',
  ],
  [
    'several faults',
    { startTime: 'x', endTime: 'y', days: ['mo'] },
    'startTime "x" is not a time of day; use for example 22:00; endTime "y" is not a time of day; use for example 04:00',
  ],
])('what cannot be read: %s', (_name, window, wanted) => {
  expect(windowsOf(window)).toBe(wanted);
});
