/** Tests the summaries on values that can be checked by hand. */
import { expect, test } from 'vitest';
import { median, percentile } from './statistics.ts';

test.each([
  ['nothing', [], 0.5, Number.NaN],
  ['one value', [7], 0.99, 7],
  ['the lower of two in the middle', [4, 1, 3, 2], 0.5, 2],
  ['the greatest, where there are fewer than a hundred', [5, 9, 1], 0.99, 9],
  [
    'the last but one of a hundred',
    Array.from({ length: 100 }, (_, index) => 100 - index),
    0.99,
    99,
  ],
  ['numbers in the order of numbers', [10, 9, 100], 0.5, 10],
])('percentile: %s', (_, values, share, wanted) => {
  expect(percentile(values, share)).toBe(wanted);
});

test.each([
  ['nothing', [], Number.NaN],
  ['one in the middle', [10, 9, 100], 10],
  ['between two', [1, 2, 4, 100], 3],
])('median: %s', (_, values, wanted) => {
  expect(median(values)).toBe(wanted);
});

test('values are left in their order', () => {
  const values = [3, 1, 2];
  expect([median(values), percentile(values, 1), ...values]).toEqual([2, 3, 3, 1, 2]);
});
