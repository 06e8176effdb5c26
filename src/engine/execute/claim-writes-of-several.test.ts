/**
 * Tests three leaders in different processes that share one limit. Whatever the API server refuses, at least one leader
 * always makes progress, and no claim stays unused.
 */
import { expect, test } from 'vitest';
import { pick, seededRandom } from '../../../test/faults/random.ts';
import { MemoryApi, refusal } from '../../../test/support/builders/memory-api.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { succeeded } from '../../../test/support/builders/observations.ts';
import { buildReconciler } from '../../../test/support/builders/reconcilers.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import {
  buildTablePlan,
  claimingDialect,
  type TablePlan,
  withAnswer,
} from '../../../test/support/builders/table-dialect.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import { WHOLE } from '../../../test/support/whole.ts';
import type { DrainPreview } from '../../drain/drain-preview.ts';
import type { KubeClient } from '../../kube/client.ts';
import { type KubeObject, type Node, nodes } from '../../kube/resources.ts';
import { claimOn, withClaim } from '../../signal/at-work.ts';
import type { Prober } from '../snapshot/probes.ts';

interface Shape {
  readonly limit: number;
  /** The names of the workers of the plan. */
  readonly own: readonly string[];
  readonly maxInFlight?: number;
}

/**
 * Builds one leader for each dialect. `meet` is called with each object before it is written; `refused` returns why a
 * node cannot be drained.
 */
function scene(
  shapes: Readonly<Record<string, Shape>>,
  meet: (object: KubeObject) => void = () => undefined,
  refused: (node: string) => DrainPreview['refused'] = () => [],
) {
  const api = new MemoryApi();
  const replace: KubeClient['replace'] = async (resource, object, options) => {
    await Promise.resolve(object).then(meet);
    return await api.client.replace(resource, object, options);
  };
  const ahead = async (node: string): Promise<DrainPreview> =>
    await Promise.resolve({ obstacles: [], refused: refused(node), evictable: 0 });
  const prober: Prober = {
    askControlPlane: async () => await Promise.resolve([]),
    previewDrains: () => ({ ahead }),
  };
  const leaders = Object.entries(shapes).map(([name, { limit, own, maxInFlight = 1 }]) => {
    const dialect = claimingDialect(name);
    for (const each of own) api.put(nodes, buildNode(each));
    const { metadata, spec, ...plan } = buildTablePlan({ workers: own });
    const stages = spec.stages.map((stage) => ({ ...stage, maxInFlight }));
    api.put(dialect.plans, {
      ...plan,
      spec: { ...spec, stages },
      metadata: { ...metadata, uid: `${name}-uid` },
    });
    const clock = new FakeClock(T0);
    const client = { ...api.client, replace };
    const policyFor = () => buildPolicy({ maxUnavailable: { nodes: limit } });
    return {
      name,
      dialect,
      clock,
      ...buildReconciler(dialect, api, { clock, client, policyFor, prober }),
      running: false,
    };
  });
  const all = Object.values(shapes).flatMap(({ own }) => own);
  const read = (): Node[] => all.map((name) => api.read(nodes, name));
  return {
    api,
    leaders,
    read,
    atWork: () =>
      read().flatMap(({ metadata }) =>
        JSON.stringify(metadata).includes('sent') ? metadata.name : [],
      ),
    isDone: () =>
      leaders.every(
        ({ dialect }) => api.read<TablePlan>(dialect.plans, 'plan').status?.phase === 'done',
      ),
    /**
     * Runs turns in which all caches catch up at the same time, so that no leader observes what the other leaders write
     * in the same turn.
     */
    lockstep: async (times: number, names = Object.keys(shapes)): Promise<void> => {
      const those = leaders.filter(({ name }) => names.includes(name));
      for (let turn = 0; turn < times; turn++) {
        for (const { catchUp } of those) catchUp();
        await Promise.all(
          those.map(async ({ clock, reconcile }) => await clock.runUntil(reconcile('plan'))),
        );
        for (const { clock } of those) await clock.advance(2_000);
      }
    },
  };
}

test('of two plans in lockstep that wait for each other, one starts', async () => {
  const shapes = { a: { limit: 1, own: ['n1', 'n2'] }, b: { limit: 1, own: ['n3', 'n4'] } };
  const { atWork, lockstep } = scene(shapes);
  await lockstep(4);
  expect(atWork()).toEqual(['n1']);
});

test('of two plans that claimed their Nodes one starts, although a third Node takes one place', async () => {
  const { api, atWork, lockstep } = scene({
    a: { limit: 2, own: ['n1', 'n2'] },
    b: { limit: 2, own: ['n3', 'n4'] },
  });
  await lockstep(1);
  expect(['n1', 'n3'].every((name) => claimOn(api.read(nodes, name)) !== undefined)).toBe(true);
  api.put(nodes, buildNode('n5', {}, 'False'));
  await lockstep(4);
  expect(atWork()).toEqual(['n1']);
});

test('of two plans in lockstep that wait for each other, one starts beside a third that is at work', async () => {
  const three = {
    a: { limit: 2, own: ['a1'] },
    b: { limit: 2, own: ['b1'] },
    c: { limit: 2, own: ['c1'] },
  };
  const { api, atWork, lockstep } = scene(three);
  await lockstep(4, ['a']);
  expect(atWork()).toEqual(['a1']);
  await lockstep(10, ['b', 'c']);
  const before = api.calls.length;
  await lockstep(10, ['b', 'c']);
  expect(atWork()).toEqual(['a1', 'b1']);
  expect(api.calls.slice(before).filter((call) => call.startsWith('replace'))).toEqual([]);
});

test('of two plans one starts beside a third with a later name that is at work', async () => {
  const three = {
    a: { limit: 2, own: ['a1'] },
    b: { limit: 2, own: ['b1'] },
    c: { limit: 2, own: ['c1'] },
  };
  const { atWork, lockstep } = scene(three);
  await lockstep(4, ['c']);
  expect(atWork()).toEqual(['c1']);
  await lockstep(40, ['a', 'b']);
  expect(atWork()).toEqual(['a1', 'c1']);
});

test('a plan whose node cannot be drained any more leaves the place to another', async () => {
  const shapes = { a: { limit: 1, own: ['a1'] }, b: { limit: 1, own: ['b1'] } };
  let isClaimed = false;
  const meet = ({ metadata }: KubeObject): void => {
    if (metadata.name === 'a1') isClaimed = true;
  };
  const why = (node: string) =>
    isClaimed && node === 'a1'
      ? [{ pod: 'n/p', reason: 'has no controller, so nothing would create it again' as const }]
      : [];
  const { read, atWork, lockstep } = scene(shapes, meet, why);
  await lockstep(40);
  expect([atWork(), read().map(claimOn)]).toEqual([['b1'], [undefined, 'b//plan/b-uid']]);
});

test('of four plans in lockstep, two that wait beside two at work do not change places for ever', async () => {
  const shape = (name: string): Shape => ({ limit: 3, own: [`${name}1`] });
  const { atWork, lockstep } = scene({
    a: shape('a'),
    b: shape('b'),
    c: shape('c'),
    d: shape('d'),
  });
  await lockstep(4, ['a']);
  await lockstep(4, ['d']);
  expect(atWork()).toEqual(['a1', 'd1']);
  await lockstep(100, ['b', 'c']);
  expect(atWork()).toHaveLength(3);
});

test.each([1, 45])(
  'a plan that its own limit holds leaves the place to one with a higher limit, after %i looks',
  async (looks) => {
    const { api, atWork, lockstep } = scene({
      a: { limit: 1, own: ['a1'] },
      b: { limit: 2, own: ['b1'] },
    });
    api.put(nodes, buildNode('z1'));
    await lockstep(1, ['a']);
    api.change(nodes, 'z1', (node) => withClaim(node, 'z//plan/z-uid'));
    await lockstep(looks, ['a']);
    // The other work on this Node has ended, and the Node is not Ready any more.
    api.put(nodes, buildNode('z1', {}, 'False'));
    await lockstep(10);
    expect(atWork()).toEqual(['b1']);
  },
);

test('a plan that the higher limit of a second plan holds does not keep a third plan waiting', async () => {
  const shapes = {
    a: { limit: 1, own: ['a1'] },
    b: { limit: 2, own: ['b1'] },
    c: { limit: 2, own: ['c1'] },
  };
  const { atWork, lockstep } = scene(shapes);
  await lockstep(5, ['a', 'b']);
  expect(atWork()).toEqual(['b1']);
  await lockstep(100);
  expect(atWork()).toEqual(['b1', 'c1']);
});

test.each(['a', 'z//gone/uid'])(
  'a claim that nobody ends takes exactly one place of the limit: %s',
  async (claim) => {
    const { api, atWork, lockstep } = scene({
      b: { limit: 2, own: ['b1'] },
      c: { limit: 2, own: ['c1'] },
    });
    api.put(nodes, withClaim(buildNode('evil'), claim));
    await lockstep(40);
    expect(atWork()).toEqual(['b1']);
  },
);

const SEEDS = Array.from({ length: WHOLE ? 40 : 12 }, (_, seed) => seed);

test.each(SEEDS)(
  'three plans with limits never exceed them and come to their end, whatever happens in between: seed %i',
  async (seed) => {
    const random = seededRandom(seed);
    const limit = 1 + (seed % 3);
    const shapeOf = (name: string, maxInFlight: number): Shape => ({
      limit,
      own: [1, 2, 3].map((each) => `${name}${each}`),
      maxInFlight,
    });
    const shapes = { a: shapeOf('a', 1 + (seed % 2)), b: shapeOf('b', 2), c: shapeOf('c', 1) };
    const { api, leaders, read, atWork, isDone } = scene(shapes, () => {
      if (seed % 2 === 1 && random() < 0.1)
        throw random() < 0.5 ? refusal(403, 'Forbidden') : refusal(409, 'Conflict');
    });
    for (let step = 0; step < 20_000 && !isDone(); step++) {
      const leader = pick(random, leaders);
      const what = random();
      if (what < 0.3) leader.catchUp();
      else if (what < 0.6 && !leader.running) {
        leader.running = true;
        const looking = leader.reconcile('plan').catch(() => undefined);
        void leader.clock.runUntil(looking).finally(() => {
          leader.running = false;
        });
      } else if (what > 0.95 && atWork().length > 0)
        api.change(nodes, pick(random, atWork()), (node) => withAnswer(node, succeeded()));
      else if (what > 0.9) await leader.clock.advance(5_000);
      for (let turns = random() * 10; turns > 0; turns--) await Promise.resolve();
      expect(atWork().length).toBeLessThanOrEqual(limit);
    }
    expect(isDone()).toBe(true);
    for (let turn = 0; turn < 10; turn++)
      for (const { catchUp, reconcile, clock } of leaders) {
        catchUp();
        await clock.runUntil(reconcile('plan').catch(() => undefined));
        await clock.advance(200_000);
      }
    expect(read().flatMap((node) => claimOn(node) ?? [])).toEqual([]);
  },
);
