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
  configure('2 workers, 2 at once, no fault', 'w1 w2', { concurrent: 2, faults: 0 }),
  ...(WHOLE ? [configure('1 worker, 2 faults', 'w1', { faults: 2 })] : []),
  configure('2 controllers, one crash each', 'c1 c2', { faults: 0, crashesEach: 1 }),
  configure('2 controllers and a worker, no fault', 'c1 c2 w1', { faults: 0 }),
  configure('2 workers, the new service never answers, 2 at once', 'w1:dead w2:dead', {
    concurrent: 2,
    faults: 0,
  }),
  configure('2 workers, each agent cordons its Node, 2 at once', 'w1 w2', {
    faults: 0,
    crashesEach: WHOLE ? 1 : 0,
    concurrent: 2,
    cordoner: 'self',
  }),
  configure('the plan is aborted, 2 at once', WHOLE ? 'w1 w2' : 'w1', {
    concurrent: 2,
    faults: 0,
    controls: ['abort'],
  }),
  configure('2 workers, retried after the new binary could not run', 'w1:garbage w2:garbage', {
    faults: 0,
    controls: ['retry'],
    times: [NOW, NOW + 30_000],
  }),
  configure('2 waves of 1 worker each, the second wave needs approval', 'w1@1 w2@2', {
    rules: { waves: 'approved' },
    concurrent: 2,
    controls: ['approve'],
    faults: 0,
  }),
  ...(WHOLE
    ? [
        configure('1 of 2 workers is held', 'w1^ w2', { controls: ['unhold'], faults: 0 }),
        configure(
          '2 workers, the new binary cannot run, the policy allows 2 attempts',
          'w1:garbage w2:garbage',
          {
            faults: 0,
            rules: { retry: { attempts: 2, backoffMs: 1000 } },
            times: [NOW, NOW + 30_000],
          },
        ),
      ]
    : []),
  configure('somebody else cordons workers', WHOLE ? 'w1 w2!' : 'w1!', { othersCordon: true }),
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
