/** Proves that a drain comes to its end whatever goes wrong on the way, evicts nothing that is to stay, and asks seldom. */
import { expect, test } from 'vitest';
import { DrainWorld, FAULTS, WATCH_FAULTS } from './drain-world.ts';

/** The last one is new each time; it is named where it fails. */
const SEEDS = [
  ...Array.from({ length: 60 }, (_, index) => index + 1),
  Math.floor(Math.random() * 1e9),
];
const happened = new Set<string>();

test.each(SEEDS)('seed %i', async (seed) => {
  const { violations, faults, asked } = await new DrainWorld(seed).run();
  expect(violations).toEqual([]);
  // Some 12 pods, and for the rest the pauses of a few lines over a minute of faults.
  expect(asked).toBeLessThan(150);
  for (const fault of faults.keys()) happened.add(fault);
});

test('every kind of fault has happened', () => {
  expect([...FAULTS, ...WATCH_FAULTS].filter((fault) => !happened.has(fault))).toEqual([]);
});
