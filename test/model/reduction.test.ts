/** Owns the check of the reduction: on small clusters it meets the very states of the whole exploration, and its verdicts. */
import { expect, test } from 'vitest';
import type { Configuration } from './cluster.ts';
import { configure } from './configurations.ts';
import { explore, type Model } from './explorer.ts';
import { counterexample, MISTAKES } from './mistakes.ts';
import { World } from './world.ts';

/** Small enough to be explored twice, and together with every reason for which states are taken for one another. */
const SMALL: readonly Configuration[] = [
  configure('1 controller, 1 worker', 'c1 w1'),
  configure('3 workers, 2 at once, no fault', 'w1 w2 w3', { concurrent: 2, faults: 0 }),
  configure('2 workers at once', 'w1 w2', { concurrent: 2 }),
  configure('2 controllers, one crash each', 'c1 c2', { faults: 0, crashesEach: 1 }),
  configure('2 workers at once, one crash each', 'w1 w2', { concurrent: 2, faults: 0, crashesEach: 1 }),
  configure('payload never comes up on one of two', 'w1 w2:dead', { concurrent: 2 }),
  configure('payload never comes up on both', 'w1:dead w2:dead', { concurrent: 2 }),
];

async function statesOf(model: Model, standIn: (state: string) => Promise<string>): Promise<Set<string>> {
  const states: string[] = [];
  const { violation } = await explore(model, { onState: (state) => states.push(state) });
  expect(violation).toBeUndefined();
  return new Set(await Promise.all(states.map(standIn)));
}

test.each(SMALL)('$name: both ways meet the same states', async (configuration) => {
  const world = new World(configuration);
  const reduced = world.reduced();
  const whole = await statesOf(world, async (state) => (await reduced.canonical?.(state)) ?? state);
  const fewer = await statesOf(reduced, async (state) => await Promise.resolve(state));
  expect(fewer).toEqual(whole);
});

/** Mistakes in what the reduction rests on itself are not to be found by it. */
const BEYOND = ['a decision on a stale view'];

test.each(MISTAKES.filter(({ name, configuration }) => !BEYOND.includes(name) && configuration.versions.length === 1))(
  '$name: found by $breaks with the reduction, too',
  async (mistake) => {
    const [whole, reduced] = [await counterexample(mistake), await counterexample(mistake, (world) => world.reduced())];
    expect(reduced?.invariant).toBe(mistake.breaks);
    expect(reduced?.steps.length).toBe(whole?.steps.length);
  },
);
