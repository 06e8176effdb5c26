/** Tests which durations are understood, and how they are written. */
import { expect, test } from 'vitest';
import {
  formatDuration,
  isDurationTooLong,
  LONGEST_DURATION,
  parseDuration,
  parseDurationOrZero,
} from './duration.ts';

test.each<[string, number | undefined]>([
  ['250ms', 250],
  ['90s', 90_000],
  ['5m', 300_000],
  ['2h', 7_200_000],
  ['0s', undefined],
  ['90', undefined],
  ['1.5h', undefined],
  ['-1s', undefined],
  ['1h30m', 5_400_000],
  ['1m250ms', 60_250],
  ['0h0m', undefined],
  ['1h 30m', undefined],
  ['1h30', undefined],
  ['5 m', undefined],
  ['5d', undefined],
  ['', undefined],
])('%j is %s ms', (text, milliseconds) => {
  expect(parseDuration(text)).toBe(milliseconds);
});

test.each<[string, number | undefined]>([
  ['0', 0],
  ['0s', 0],
  ['0h0m', 0],
  ['00ms', 0],
  ['90s', 90_000],
  ['-0s', undefined],
  ['0d', undefined],
  ['', undefined],
])('%j is %s ms where a duration may be zero', (text, milliseconds) => {
  expect(parseDurationOrZero(text)).toBe(milliseconds);
});

test.each<[number, string]>([
  [-5, '0 ms'],
  [0, '0 ms'],
  [849.6, '850 ms'],
  [999, '999 ms'],
  [1000, '1 s'],
  [59_499, '59 s'],
  [59_500, '1 min'],
  [60_000, '1 min'],
  [200_000, '3 min 20 s'],
  [3_599_499, '59 min 59 s'],
  [3_599_500, '1 h'],
  [7_500_000, '2 h 5 min'],
  [360_000_000, '100 h'],
])('%d ms are told as %j', (milliseconds, text) => {
  expect(formatDuration(milliseconds)).toBe(text);
});

test('a duration that Go cannot hold is called too long, and the longest duration is not', () => {
  expect(isDurationTooLong('99999999999h')).toBe(true);
  expect(isDurationTooLong('2562048h')).toBe(true);
  expect(isDurationTooLong(LONGEST_DURATION)).toBe(false);
  expect(parseDuration(LONGEST_DURATION)).toBeDefined();
  expect(isDurationTooLong('5d')).toBe(false);
});
