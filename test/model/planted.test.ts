/** Tests that the explorer finds each planted mistake within a few steps, with and without the reduction. */
import { expect, test } from 'vitest';
import type { KubeObject } from '../../src/kube/resources.ts';
import { configure } from './configure.ts';
import { printViolation } from './explorer.ts';
import { INVARIANTS } from './invariants.ts';
import { realLeader } from './leader.ts';
import { counterexample, MISTAKES } from './mistakes.ts';
import { signalBeforeIntent } from './planted-leaders.ts';
import { mistakeRow } from './safety-page.ts';
import { readPage } from './safety-page-file.ts';
import { World } from './world.ts';

/** More than the longest needs; a way from start to finish takes about fifty for two nodes. */
const A_FEW_STEPS = 40;

/** What is found within fewer states than the longest ways need. */
const SHALLOW = MISTAKES.filter(
  ({ configuration, breaks }) =>
    configuration.versions.length === 1 &&
    !['one-controller-in-motion', 'concurrent-workers'].includes(breaks),
);

test.each(MISTAKES)('$name: found by $breaks', async (mistake) => {
  const world = new World(mistake.configuration, mistake.parts);
  const violation = await counterexample(mistake, world.model());
  if (!violation) throw new Error('nothing is broken');
  console.log(`${mistake.name}: ${printViolation(violation)}`);
  expect(violation.invariant).toBe(mistake.breaks);
  expect(violation.steps.length).toBeLessThanOrEqual(A_FEW_STEPS);
  expect(readPage()).toContain(mistakeRow(mistake, violation));
  if (!SHALLOW.includes(mistake)) return;
  // The same world: what agents and leaders do there is known by now.
  const whole = await counterexample(mistake, world);
  expect(whole?.invariant).toBe(mistake.breaks);
  // Where an agent has only to clean up, the reduction does not wait for it.
  expect(violation.steps.length).toBeLessThanOrEqual(whole?.steps.length ?? 0);
});

test('every invariant is broken by some mistake', () => {
  const broken = new Set(MISTAKES.map(({ breaks }) => breaks));
  expect(INVARIANTS.map(({ name }) => name).filter((name) => !broken.has(name))).toEqual([]);
});

test('the same lost write with a fixed choice starts only the first target', async () => {
  const configuration = configure('2 controllers', 'c1 c2', { faults: 0 });
  const parts = { leader: signalBeforeIntent };
  const found = await counterexample({
    name: '',
    configuration,
    parts,
    breaks: 'signals-within-slots',
  });
  expect(found).toBeUndefined();
});

test('the model refuses a write without a resourceVersion', async () => {
  const careless = (object: KubeObject): KubeObject => {
    const { resourceVersion: _, ...metadata } = object.metadata;
    return { ...object, metadata };
  };
  const world = new World(configure('1 worker', 'w1'), {
    leader: async (view) => {
      const deeds = await realLeader(view);
      return { ...deeds, writes: deeds.writes.map(careless) };
    },
  });
  await expect(world.next(world.initial)).rejects.toThrow('without a resourceVersion');
});
