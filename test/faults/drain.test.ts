/** Tests that a drain ends whatever faults happen, evicts no pod that must stay, and sends few requests. */
import { expect, test } from 'vitest';
import { DrainWorld, FAULTS, WATCH_FAULTS } from './drain-world.ts';

/** The last seed is different in each run. The name of a failed test shows the seed. */
const SEEDS = [
  ...Array.from({ length: 60 }, (_, index) => index + 1),
  Math.floor(Math.random() * 1e9),
];
const happened = new Set<string>();

test.each(SEEDS)('seed %i', async (seed) => {
  const { violations, faults, asked } = await new DrainWorld(seed).run();
  expect(violations).toEqual([]);
  // There are about 12 pods. The other requests are retries. The pauses between retries limit the number of retries in
  // the minute of faults.
  expect(asked).toBeLessThan(150);
  for (const fault of faults.keys()) happened.add(fault);
});

test('every kind of fault has happened', () => {
  expect([...FAULTS, ...WATCH_FAULTS].filter((fault) => !happened.has(fault))).toEqual([]);
});
