/**
 * Tests the reduction on small clusters: the reduced exploration finds the same states as the full exploration.
 * `planted.test.ts` tests that both find the same mistakes.
 */
import { expect, test } from 'vitest';
import { WHOLE } from '../../support/whole.ts';
import { type Configuration, NOW } from '../cluster.ts';
import { configure } from '../configure.ts';
import { explore, type Model } from '../explorer.ts';
import { World } from '../world.ts';

/**
 * Small configurations, so that they can be explored twice. Together they contain every reason for which two states
 * count as the same.
 */
const SMALL: readonly Configuration[] = [
  configure('1 controller, 1 worker', 'c1 w1'),
  configure('2 workers at once, no fault', 'w1 w2', { concurrent: 2, faults: 0 }),
  ...(WHOLE ? [configure('1 worker, 2 faults', 'w1', { faults: 2 })] : []),
  configure('2 controllers, one crash each', 'c1 c2', { faults: 0, crashesEach: 1 }),
  configure('2 controllers and a worker, no fault', 'c1 c2 w1', { faults: 0 }),
  configure('payload never comes up on both', 'w1:dead w2:dead', { concurrent: 2, faults: 0 }),
  configure('2 workers that cordon themselves', 'w1 w2', {
    faults: 0,
    crashesEach: WHOLE ? 1 : 0,
    concurrent: 2,
    cordoner: 'self',
  }),
  configure('aborted', WHOLE ? 'w1 w2' : 'w1', { concurrent: 2, faults: 0, controls: ['abort'] }),
  configure('tried again', 'w1:garbage w2:garbage', {
    faults: 0,
    controls: ['retry'],
    times: [NOW, NOW + 30_000],
  }),
  configure('waves, approved', 'w1@1 w2@2', {
    rules: { waves: 'approved' },
    concurrent: 2,
    controls: ['approve'],
    faults: 0,
  }),
  ...(WHOLE
    ? [
        configure('1 of 2 is held', 'w1^ w2', { controls: ['unhold'], faults: 0 }),
        configure('tried twice by policy', 'w1:garbage w2:garbage', {
          faults: 0,
          rules: { retry: { attempts: 2, backoffMs: 1000 } },
          times: [NOW, NOW + 30_000],
        }),
      ]
    : []),
  configure('others cordon', WHOLE ? 'w1 w2!' : 'w1!', { othersCordon: true }),
];

async function statesOf(
  model: Model,
  standIn: (state: string) => Promise<string>,
): Promise<Set<string>> {
  const states: string[] = [];
  const { violation } = await explore(model, { onState: (state) => states.push(state) });
  expect(violation).toBeUndefined();
  return new Set(await Promise.all(states.map(standIn)));
}

test.each(SMALL)('$name: with and without reduction, the same states', async (configuration) => {
  const world = new World(configuration);
  const reduced = world.reduced();
  const whole = await statesOf(world, async (state) => (await reduced.canonical?.(state)) ?? state);
  const fewer = await statesOf(reduced, async (state) => await Promise.resolve(state));
  expect(fewer).toEqual(whole);
});
