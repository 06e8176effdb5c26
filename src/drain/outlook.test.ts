/** Shows what is told of a drain before anything is touched. */
import { expect, test } from 'vitest';
import { PodApi } from '../../test/builders/pod-api.ts';
import { buildBudget, buildPod, type PodTraits } from '../../test/builders/pods.ts';
import { DEFAULT_DRAIN } from './options.ts';
import { lookAhead } from './outlook.ts';

const { signal } = new AbortController();

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
  api.budgets = [buildBudget('web', { maxUnavailable: 0 }, { expectedPods: 2, desiredHealthy: 2, currentHealthy: 2 })];
  expect(await lookAhead(api.client, 'n1', { ...DEFAULT_DRAIN, unmanagedPods: 'refuse' }, signal)).toEqual({
    evictable: 3,
    obstacles: [
      {
        budget: 'default/web',
        pods: ['default/web'],
        reason: 'it wants 2 of its 2 pods healthy at all times (maxUnavailable: 0)',
      },
    ],
    refused: [
      { pod: 'default/bare', reason: 'has no controller, so nobody would create it anew' },
      { pod: 'default/lost', reason: 'belongs to a DaemonSet that is gone, so nobody would create it anew' },
    ],
  });
  expect(api.evictions).toEqual([]);
});

test('where nothing has to go, no budget is asked about', async () => {
  const api = cluster([['agent', { controller: 'DaemonSet/ds' }]]);
  expect(await lookAhead(api.client, 'n1', DEFAULT_DRAIN, signal)).toEqual({
    evictable: 0,
    obstacles: [],
    refused: [],
  });
  expect(api.reads).toEqual(['list pods spec.nodeName=n1', 'get daemonsets default/ds']);
});
