/**
 * Tests that the explorer finds the planted mistakes that need only a few states, and which violations it finds if
 * writes are made in the right order.
 */
import { expect, test } from 'vitest';
import type { KubeObject } from '../../src/kube/resources.ts';
import { configure } from './configure.ts';
import { isFoundSoon, testMistakes } from './found-mistakes.ts';
import { INVARIANTS } from './invariants.ts';
import { realLeader } from './leader.ts';
import { counterexample, MISTAKES } from './mistakes.ts';
import { signalBeforeIntent } from './planted-leaders.ts';
import { World } from './world.ts';

testMistakes(MISTAKES.filter(isFoundSoon));

test('every invariant is broken by some mistake', () => {
  const broken = new Set(MISTAKES.map(({ breaks }) => breaks));
  expect(INVARIANTS.map(({ name }) => name).filter((name) => !broken.has(name))).toEqual([]);
});

test('after a lost write, a leader that chooses in a fixed order starts only the first target', async () => {
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
