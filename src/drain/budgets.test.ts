/**
 * Shows which PodDisruptionBudgets are reported because they can never allow an eviction, and the text of the report.
 * test/testenv/drain.test.ts checks the same with a real server.
 */
import { expect, test } from 'vitest';
import { buildBudget, buildPod, type PodTraits } from '../../test/support/builders/pods.ts';
import type { PodDisruptionBudget } from '../kube/resources.ts';
import { hopelessBudgets } from './budgets.ts';

const labels = { app: 'web' };
const UNREADY: PodTraits = { labels, ready: false };
const of = (
  spec: NonNullable<PodDisruptionBudget['spec']>,
  status?: NonNullable<PodDisruptionBudget['status']>,
): PodDisruptionBudget => buildBudget('web', spec, status);
/** The status of a budget whose three pods must all stay healthy, and are healthy. */
const ALL = { disruptionsAllowed: 0, currentHealthy: 3, desiredHealthy: 3, expectedPods: 3 };
const EVERY = 'it wants 3 of its 3 pods healthy at all times';
const AT_ALL_TIMES = 'it wants all of its pods healthy at all times';

test.each<[string, PodDisruptionBudget, string | undefined, PodTraits?]>([
  ['minAvailable of all', of({ minAvailable: 3 }, ALL), `${EVERY} (minAvailable: 3)`],
  [
    'minAvailable of more than all',
    of({ minAvailable: 5 }, { ...ALL, desiredHealthy: 5 }),
    'it wants 5 of its 3 pods healthy at all times (minAvailable: 5)',
  ],
  [
    'minAvailable that rounds up to all',
    of({ minAvailable: '90%' }, ALL),
    `${EVERY} (minAvailable: 90%)`,
  ],
  ['maxUnavailable of none', of({ maxUnavailable: 0 }, ALL), `${EVERY} (maxUnavailable: 0)`],
  [
    'nothing asked for',
    of({}, { expectedPods: 0 }),
    'it has neither minAvailable nor maxUnavailable',
  ],
  [
    'one to spare',
    of({ minAvailable: 2 }, { ...ALL, desiredHealthy: 2, disruptionsAllowed: 1 }),
    undefined,
  ],
  [
    'none to spare just now',
    of({ minAvailable: 2 }, { ...ALL, desiredHealthy: 2, currentHealthy: 2 }),
    undefined,
  ],
  [
    'all wanted, and one too many just now',
    of({ minAvailable: 3 }, { ...ALL, currentHealthy: 4, disruptionsAllowed: 1 }),
    undefined,
  ],
  [
    'a pod that is not Ready',
    of({ maxUnavailable: 0 }, { ...ALL, currentHealthy: 2 }),
    `${EVERY} (maxUnavailable: 0)`,
    UNREADY,
  ],
  [
    'a pod that is not Ready and may go',
    of({ maxUnavailable: 0, unhealthyPodEvictionPolicy: 'AlwaysAllow' }, ALL),
    undefined,
    UNREADY,
  ],
  [
    'a Ready pod where others may go',
    of({ maxUnavailable: 0, unhealthyPodEvictionPolicy: 'AlwaysAllow' }, ALL),
    `${EVERY} (maxUnavailable: 0)`,
  ],
  [
    'a pod that is not Ready beside enough others',
    of({ minAvailable: 3 }, ALL),
    undefined,
    UNREADY,
  ],
  [
    'a pod that does not run yet',
    of({ maxUnavailable: 0 }, ALL),
    undefined,
    { labels, phase: 'Pending' },
  ],
  [
    'a controller that cannot count',
    of(
      { maxUnavailable: 1 },
      {
        observedGeneration: 0,
        conditions: [
          { type: 'DisruptionAllowed', status: 'False', reason: 'SyncFailed', message: 'no scale' },
        ],
      },
    ),
    'Kubernetes cannot count the pods that it should cover: no scale',
  ],
  [
    'bare pods, which no workload counts',
    of({ maxUnavailable: 1 }, { expectedPods: 0 }),
    'it covers pods without a controller (maxUnavailable: 1)',
    { labels, controller: null },
  ],
  [
    'bare pods, by number',
    of({ minAvailable: 1 }, { expectedPods: 0 }),
    undefined,
    { labels, controller: null },
  ],
  ['pods that are not counted yet', of({ maxUnavailable: 1 }, { expectedPods: 0 }), undefined],
  [
    'not seen yet, maxUnavailable of none',
    of({ maxUnavailable: 0 }, { observedGeneration: 0 }),
    `${AT_ALL_TIMES} (maxUnavailable: 0)`,
  ],
  [
    'not seen yet, none in percent',
    of({ maxUnavailable: '0%' }, { observedGeneration: 0 }),
    `${AT_ALL_TIMES} (maxUnavailable: 0%)`,
  ],
  [
    'not seen yet, all in percent',
    of({ minAvailable: '100%' }, { observedGeneration: 0 }),
    `${AT_ALL_TIMES} (minAvailable: 100%)`,
  ],
  ['not seen yet, a number', of({ minAvailable: 1 }, { ...ALL, observedGeneration: 0 }), undefined],
  [
    'pods of others',
    of({ maxUnavailable: 0, selector: { matchLabels: { app: 'db' } } }, ALL),
    undefined,
  ],
  ['no selector', of({ maxUnavailable: 0, selector: undefined as never }, ALL), undefined],
  [
    'a selector of all pods',
    of({ maxUnavailable: 0, selector: {} }, ALL),
    `${EVERY} (maxUnavailable: 0)`,
  ],
  [
    'another namespace',
    {
      ...of({ maxUnavailable: 0 }, ALL),
      metadata: { name: 'web', namespace: 'other', generation: 1 },
    },
    undefined,
  ],
])('%s', (_name, budget, reason, traits = { labels }) => {
  const expected =
    reason === undefined ? [] : [{ budget: 'default/web', pods: ['default/p'], reason }];
  expect(hopelessBudgets([buildPod('p', traits)], [budget])).toEqual(expected);
});

test('two budgets over one pod stand in the way even where each has something to spare, but for pods that do not run', () => {
  const spare = { ...ALL, desiredHealthy: 2, disruptionsAllowed: 1 };
  const one = of({ minAvailable: 2 }, spare);
  const two = { ...of({ minAvailable: 2 }, spare) };
  const other = { ...two, metadata: { ...two.metadata, name: 'also-web' } };
  const pods = [
    buildPod('p', { labels }),
    buildPod('q', { labels, ready: false }),
    buildPod('r', { labels, phase: 'Pending' }),
  ];
  const reason =
    'its pods are also covered by PodDisruptionBudget default/web, and Kubernetes cannot evict a pod that more than one budget covers';
  expect(hopelessBudgets(pods, [one, other])).toEqual([
    { budget: 'default/also-web', pods: ['default/p', 'default/q'], reason },
  ]);
});

test('Refit lists each PodDisruptionBudget that never allows an eviction once, with all its pods', () => {
  const budgets = [
    buildBudget('web', { maxUnavailable: 0 }, ALL),
    buildBudget('db', { minAvailable: 3 }, ALL),
  ];
  const pods = [
    buildPod('w2', { labels }),
    buildPod('w1', { labels }),
    buildPod('d', { labels: { app: 'db' } }),
    buildPod('free'),
  ];
  expect(hopelessBudgets(pods, budgets)).toEqual([
    { budget: 'default/db', pods: ['default/d'], reason: `${EVERY} (minAvailable: 3)` },
    {
      budget: 'default/web',
      pods: ['default/w1', 'default/w2'],
      reason: `${EVERY} (maxUnavailable: 0)`,
    },
  ]);
});
