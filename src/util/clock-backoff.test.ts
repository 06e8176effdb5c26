/** Tests that the delays between retries grow up to a bound, are spread out, and are never zero. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { backoffDelay } from './clock.ts';

const options = { base: 100, cap: 10_000 };

test.each([
  [0, 50, 100],
  [1, 100, 200],
  [2, 200, 400],
  [6, 3200, 6400],
  [7, 5000, 10_000],
  [8, 5000, 10_000],
  [1_000_000, 5000, 10_000],
])('retry %i waits between %i and %i ms', (attempt, least, most) => {
  expect(backoffDelay(attempt, { ...options, random: () => 0 })).toBe(least);
  expect(backoffDelay(attempt, { ...options, random: () => 1 })).toBe(most);
});

test('a retry waits at least half of the base delay (or of a smaller cap), and at most the cap', () => {
  const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  fc.assert(
    fc.property(
      fc.nat(100),
      fc.integer({ min: 1, max: 1e6 }),
      fc.integer({ min: 1, max: 1e7 }),
      chance,
      (...drawn) => {
        const [attempt, base, cap, random] = drawn;
        const delay = backoffDelay(attempt, { base, cap, random: () => random });
        expect(delay).toBeGreaterThanOrEqual(Math.min(base, cap) / 2);
        expect(delay).toBeLessThanOrEqual(cap);
      },
    ),
  );
});

test('chance is asked once for each wait', () => {
  const drawn = [0.5, 0.25];
  const random = (): number => drawn.shift() ?? Number.NaN;
  expect([
    backoffDelay(0, { ...options, random }),
    backoffDelay(0, { ...options, random }),
  ]).toEqual([75, 62.5]);
});
