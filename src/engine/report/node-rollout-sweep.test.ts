/** Tests which NodeRollouts are marked as those of deleted plans, and which are deleted. */
import { expect, test } from 'vitest';
import { MemoryApi } from '../../../test/support/builders/memory-api.ts';
import { tableDialect } from '../../../test/support/builders/table-dialect.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { later, T0 } from '../../../test/support/clock/times.ts';
import { nodeRollouts } from '../../api/kinds.ts';
import type { NodeRollout, NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { KubeObject } from '../../kube/resources.ts';
import type { Dialect } from '../contract/dialect.ts';
import { KEPT_MS, MOST_KEPT, type SweepParts, sweep, tooOld } from './node-rollout-sweep.ts';

const PLACED = { ...tableDialect, nodeRollouts: { namespace: 'ns' } };
const COUNTS = { total: 1, done: 0, failed: 0, inProgress: 1, pending: 0, skipped: 0 };

function planNamed(name: string): KubeObject {
  return { metadata: { name } };
}

function shownOf(plan: string, status?: NodeRollout['status'], namespace = 'ns'): NodeRollout {
  return {
    metadata: { name: `table-${plan}`, namespace, uid: `${plan}-uid` },
    spec: { plan: { apiVersion: 'v1', kind: 'Plan', name: plan } },
    ...(status === undefined ? {} : { status }),
  };
}

/** Returns the writes of a search for NodeRollouts of deleted plans, and the options of its requests. */
async function swept(shown: readonly NodeRollout[], more: Partial<SweepParts> = {}) {
  const api = new MemoryApi();
  for (const each of shown) api.put(nodeRollouts, each);
  const options: unknown[] = [];
  const { client } = api;
  const watched = {
    ...client,
    listAll: async (...args: Parameters<KubeClient['listAll']>) => {
      options.push(args[1]);
      return await client.listAll(...args);
    },
    patch: async (...args: Parameters<KubeClient['patch']>) => {
      options.push(args[3]);
      return await client.patch(...args);
    },
    delete: async (...args: Parameters<KubeClient['delete']>) => {
      options.push(args[2]);
      await client.delete(...args);
    },
  } as KubeClient;
  const clock = new FakeClock(T0);
  await sweep({ dialect: PLACED, client: watched, plans: () => [], clock, ...more });
  return { api, options, writes: api.calls.filter((call) => !call.startsWith('list')) };
}

test('a NodeRollout without a plan shows that its plan was deleted, and one with a plan does not change', async () => {
  const { api, options, writes } = await swept([shownOf('a'), shownOf('b')], {
    plans: () => [planNamed('b')],
  });
  expect(writes).toEqual(['patch noderollouts/table-a/status']);
  expect(api.read(nodeRollouts, 'table-a').status).toMatchObject({
    phase: 'deleted',
    planDeleted: later(0),
  });
  expect(options).toEqual([
    { namespace: 'ns', labelSelector: 'upgrade.refit.dev/dialect=table' },
    { type: 'merge', subresource: 'status', namespace: 'ns' },
  ]);
});

test('a NodeRollout that shows the deletion already is not written again, and is deleted when it is old', async () => {
  const young = shownOf('a', { planDeleted: later(-KEPT_MS + 1000) });
  const old = shownOf('b', { planDeleted: later(-KEPT_MS) });
  const { options, writes } = await swept([young, old]);
  expect(writes).toEqual(['delete noderollouts/table-b']);
  expect(options.at(-1)).toEqual({ namespace: 'ns', uid: 'b-uid' });
});

test('a NodeRollout with the same name in another namespace is not that of the plan', async () => {
  const { writes } = await swept([shownOf('a', undefined, 'other')], {
    plans: () => [planNamed('a')],
  });
  expect(writes).toEqual(['patch noderollouts/table-a/status']);
});

test('an object of the kind that is no plan has no NodeRollout to keep', async () => {
  const dialect = {
    ...PLACED,
    planObjects: { isPlan: ({ metadata: { name } }: KubeObject) => name !== 'a' },
  } as Dialect;
  const { writes } = await swept([shownOf('a'), shownOf('b')], {
    dialect,
    plans: () => ['a', 'b'].map(planNamed),
  });
  expect(writes).toEqual(['patch noderollouts/table-a/status']);
});

test.each<[string, Partial<Dialect>, string | undefined]>([
  [
    'of the NodeRollouts of the dialect',
    { nodeRollouts: { namespace: 'ns' }, planObjects: { namespace: 'plans' } },
    'ns',
  ],
  ['of the plans', { planObjects: { namespace: 'plans' } }, 'plans'],
  ['of nobody, if plans are in every namespace', { planObjects: {} }, undefined],
  ['of nobody, if nothing limits the plans', {}, undefined],
])('NodeRollouts are listed in the namespace %s', async (_title, features, namespace) => {
  const dialect = { ...tableDialect, ...features } as Dialect;
  const { options, writes } = await swept([], { dialect, plans: () => [planNamed('a')] });
  expect(options).toEqual([{ namespace, labelSelector: 'upgrade.refit.dev/dialect=table' }]);
  expect(writes).toEqual([]);
});

function endedRun(ended?: string): NodeRolloutRun {
  const run = { id: 'r', started: later(-KEPT_MS - 1000), phase: 'done', counts: COUNTS } as const;
  return ended === undefined ? run : { ...run, ended };
}

test('if other processes have plans, too, nothing is marked as deleted, and the age counts from the last end', async () => {
  const old = shownOf('a', { history: [endedRun(later(-KEPT_MS)), endedRun(later(0))] });
  const young = shownOf('b', { history: [endedRun(later(-KEPT_MS + 1000))] });
  const running = shownOf('c', { history: [endedRun()] });
  const empty = shownOf('d', {});
  const bare = shownOf('e');
  const all = [old, young, running, empty, bare];
  expect((await swept(all, { isShared: true })).writes).toEqual(['delete noderollouts/table-a']);
  const marked = await swept(all);
  expect(marked.writes).toEqual(
    ['a', 'b', 'c', 'd', 'e'].map((name) => `patch noderollouts/table-${name}/status`),
  );
});

test('in each namespace the NodeRollouts that were deleted last are kept', () => {
  const gone = (name: string, namespace: string, agoMs: number): NodeRollout =>
    shownOf(name, { planDeleted: later(-agoMs) }, namespace);
  const many = (namespace: string, count: number): NodeRollout[] =>
    Array.from({ length: count }, (_, index) =>
      gone(`${namespace}${index}`, namespace, index * 1000),
    );
  const open = Array.from({ length: MOST_KEPT }, (_, index) => shownOf(`open${index}`));
  const old = gone('old', 'a', KEPT_MS);
  const left = [...many('a', MOST_KEPT + 2).toReversed(), ...many('b', MOST_KEPT), old, ...open];
  expect(tooOld(left, T0, false).map(({ metadata: { name } }) => name)).toEqual([
    'table-old',
    `table-a${MOST_KEPT}`,
    `table-a${MOST_KEPT + 1}`,
  ]);
});
