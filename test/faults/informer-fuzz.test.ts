/**
 * Tests that an informer's view finally equals the state of the server, whatever faults happen, and that the informer
 * never reports impossible events.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ApiServer, startApiServer } from '../../sandbox/api-server/api-server.ts';
import type { WatchEvent } from '../../src/kube/client.ts';
import type { KubeObject } from '../../src/kube/resources.ts';
import { WHOLE } from '../support/whole.ts';
import { ALL_FAULTS } from './fault-dice.ts';
import { LAST, type Outcome, runTrial, type Tamper, type Trial } from './informer-world.ts';

const MUTATIONS = 3_000;
/**
 * Fixed seeds, so that a failure can be repeated, and one seed that is different in each run. The name of a failed test
 * shows the seed.
 */
const SEEDS = [1, ...(WHOLE ? [2, 3, 4, 5, 6, 7] : []), Math.floor(Math.random() * 1e9)];

let server: ApiServer;
const outcomes: Outcome[] = [];

beforeAll(async () => {
  server = await startApiServer({ bookmarkIntervalMs: 100 });
});
afterAll(async () => {
  await server.stop();
});

function trial(seed: number, mutations: number): Trial {
  const config = { server: server.url, user: {}, namespace: 'default', files: [] };
  return {
    seed,
    mutations,
    config,
    upstream: { url: server.url },
    compact: () => server.compact(),
  };
}

test.each(SEEDS)(`seed %i: ${MUTATIONS} changes under faults`, async (seed) => {
  const outcome = await runTrial(trial(seed, MUTATIONS));
  expect(outcome.violations).toEqual([]);
  expect(outcome.events).toBeGreaterThan(MUTATIONS / 4);
  outcomes.push(outcome);
});

test('every kind of fault has happened', () => {
  const happened = new Set(outcomes.flatMap(({ faults }) => [...faults.keys()]));
  expect(ALL_FAULTS.filter((name) => !happened.has(name))).toEqual([]);
});

/**
 * Drops events for which `isVictim` is true: the first such event after at least twenty delivered events, and all such
 * events among the last changes.
 */
const losing = (isVictim: (event: WatchEvent<KubeObject>) => boolean): Tamper => {
  let count = 0;
  const isLast = ({ type, object }: WatchEvent<KubeObject>): boolean =>
    type !== 'ERROR' && Object.values<string | undefined>(LAST).includes(object.metadata.name);
  return async function* (events) {
    for await (const event of events) {
      const isLost = isVictim(event) && (count >= 20 || isLast(event));
      count = isLost ? 0 : count + 1;
      if (!isLost) yield event;
    }
  };
};

test.each<[string, Tamper]>([
  ['loses a deletion', losing(({ type }) => type === 'DELETED')],
  ['loses an edit', losing(({ type }) => type === 'MODIFIED')],
])('a view that now and then %s is found out', async (_name, tamper) => {
  const { violations } = await runTrial({ ...trial(21, 300), tamper });
  expect(violations.join('\n')).toContain('the view differs from the server');
});

test('a view that loses nothing is right without faults, too', async () => {
  const { violations } = await runTrial({ ...trial(22, 300), tamper: losing(() => false) });
  expect(violations).toEqual([]);
});
