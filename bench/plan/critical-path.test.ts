/** Tests the calculation of the shortest time of a plan, on schedules that can be checked by hand. */
import { expect, test } from 'vitest';
import { criticalPath, listSchedule } from './critical-path.ts';

test.each([
  ['none', [], 2, 0],
  ['one slot: one after the other', [3, 1, 2], 1, 6],
  ['a slot for each: the longest', [3, 1, 2], 5, 3],
  ['whoever is done first makes room', [4, 1, 2, 3], 2, 6],
  ['order counts: the long one comes last', [1, 1, 4], 2, 5],
])('list schedule: %s', (_, durations, slots, wanted) => {
  expect(listSchedule(durations, slots)).toBe(wanted);
});

test('one download, controllers one after the other, then the workers over the slots', () => {
  expect(criticalPath({ download: 2, controllers: [10, 20], workers: [5, 5, 5] }, 2)).toBe(42);
});
