/** Shows what a drain preview reports before anything is changed. */
import { expect, test } from 'vitest';
import { PodApi } from '../../test/support/builders/pod-api.ts';
import { buildBudget, buildPod, type PodTraits } from '../../test/support/builders/pods.ts';
import { drainPreviewer } from './drain-preview.ts';
import { DEFAULT_DRAIN } from './pods.ts';

const { signal: abort } = new AbortController();

function cluster(pods: readonly [string, PodTraits?][]): PodApi {
  const api = new PodApi();
  api.daemonSets.add('ds');
  for (const [name, traits] of pods) api.put(buildPod(name, traits));
  return api;
}

test('what a drain would evict, what would hold it for ever, and what it would refuse', async () => {
  const labels = { app: 'web' };
  const api = cluster([
    ['web', { labels }],
    ['free'],
    ['ending', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }],
    ['bare', { controller: null }],
    ['agent', { controller: 'DaemonSet/ds' }],
    ['lost', { controller: 'DaemonSet/gone' }],
    ['elsewhere', { labels, node: 'n2' }],
  ]);
  api.budgets = [
    buildBudget(
      'web',
      { maxUnavailable: 0 },
      { expectedPods: 2, desiredHealthy: 2, currentHealthy: 2 },
    ),
  ];
  expect(
    await drainPreviewer(api.client, abort).ahead('n1', {
      ...DEFAULT_DRAIN,
      unmanagedPods: 'refuse',
    }),
  ).toEqual({
    evictable: 3,
    obstacles: [
      {
        budget: 'default/web',
        pods: ['default/web'],
        reason: 'it wants 2 of its 2 pods healthy at all times (maxUnavailable: 0)',
      },
    ],
    refused: [
      { pod: 'default/bare', reason: 'has no controller, so nothing would create it again' },
      {
        pod: 'default/lost',
        reason: 'belongs to a DaemonSet that is gone, so nothing would create it again',
      },
    ],
  });
  expect(api.evictions).toEqual([]);
});

test('a drain that deletes pods is blocked by no budget', async () => {
  const api = cluster([['web', { labels: { app: 'web' } }]]);
  const counts = { expectedPods: 1, desiredHealthy: 1, currentHealthy: 1 };
  api.budgets = [buildBudget('web', { maxUnavailable: 0 }, counts)];
  const look = drainPreviewer(api.client, abort);
  expect((await look.ahead('n1', DEFAULT_DRAIN)).obstacles).toHaveLength(1);
  expect(await look.ahead('n1', { ...DEFAULT_DRAIN, deletes: true })).toEqual({
    evictable: 1,
    obstacles: [],
    refused: [],
  });
});

test('where nothing has to go, no budget is asked about', async () => {
  const api = cluster([['agent', { controller: 'DaemonSet/ds' }]]);
  expect(await drainPreviewer(api.client, abort).ahead('n1', DEFAULT_DRAIN)).toEqual({
    evictable: 0,
    obstacles: [],
    refused: [],
  });
  expect(api.reads).toEqual(['list pods spec.nodeName=n1', 'get daemonsets default/ds']);
});

test('of many nodes each is asked for its pods, and once for the budgets and each DaemonSet', async () => {
  const agents = ['n1', 'n2', 'n3'].map((node): [string, PodTraits] => [
    `agent-${node}`,
    { controller: 'DaemonSet/ds', node },
  ]);
  const api = cluster([['a'], ['b', { node: 'n2' }], ...agents]);
  const look = drainPreviewer(api.client, abort);
  const drainPreviews = await Promise.all(
    ['n1', 'n2', 'n3'].map(async (node) => (await look.ahead(node, DEFAULT_DRAIN)).evictable),
  );
  expect(drainPreviews).toEqual([1, 1, 0]);
  expect(api.reads.filter((read) => read.includes('poddisruptionbudgets'))).toHaveLength(1);
  expect(api.reads.filter((read) => read.includes('daemonsets'))).toHaveLength(1);
  expect(api.reads.filter((read) => read.includes('list pods'))).toHaveLength(3);
});

test.each<[string, { disruptionsAllowed?: number; currentHealthy?: number }, object]>([
  [
    'a budget that may let go later',
    { currentHealthy: 1 },
    {
      left: 2,
      pods: ['default/ending', 'default/web'],
      budgets: ['default/web'],
      blockedBy:
        'PodDisruptionBudget default/web blocks default/web: it needs 1 healthy pods and has 1 currently; ' +
        'default/ending should have ended by 2026-01-01T00:00:00Z (the kubelet has not reported that it ended)',
    },
  ],
  [
    'one that has a pod to spare',
    { currentHealthy: 2, disruptionsAllowed: 1 },
    {
      left: 2,
      pods: ['default/ending', 'default/web'],
      blockedBy:
        'default/ending should have ended by 2026-01-01T00:00:00Z (the kubelet has not reported that it ended)',
    },
  ],
])('a drain that somebody else carries out: %s', async (_name, status, progress) => {
  const labels = { app: 'web' };
  const api = cluster([
    ['web', { labels }],
    ['ending', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }],
    ['agent', { controller: 'DaemonSet/ds' }],
  ]);
  api.budgets = [
    buildBudget('web', { minAvailable: 1 }, { expectedPods: 2, desiredHealthy: 1, ...status }),
  ];
  const now = Date.UTC(2026, 0, 1, 1);
  expect(await drainPreviewer(api.client, abort).during('n1', DEFAULT_DRAIN, now)).toEqual(
    progress,
  );
});

test('a budget that nobody has counted for yet', async () => {
  const api = cluster([['web', { labels: { app: 'web' } }]]);
  api.budgets = [buildBudget('web', { minAvailable: 1 }, { observedGeneration: 0 })];
  expect(await drainPreviewer(api.client, abort).during('n1', DEFAULT_DRAIN, 0)).toEqual({
    left: 1,
    pods: ['default/web'],
    budgets: ['default/web'],
    blockedBy:
      'PodDisruptionBudget default/web blocks default/web: it is still being processed by the server',
  });
});
