/** Shows how PodDisruptionBudgets and pods with missing or unusual fields are judged, and in which order they are told. */
import { expect, test } from 'vitest';
import { buildBudget, buildPod } from '../../test/support/builders/pods.ts';
import type { Pod, PodDisruptionBudget } from '../kube/resources.ts';
import { findOverdue, holdingBudgets, hopelessBudgets } from './budgets.ts';

const labels = { app: 'web' };
const POD = buildPod('p', { labels });
const UNREADY = buildPod('p', { labels, ready: false });
const reasonsOf = (found: readonly { reason: string }[]): string[] =>
  found.map(({ reason }) => reason);

function named(name: string, budget: PodDisruptionBudget): PodDisruptionBudget {
  return { ...budget, metadata: { ...budget.metadata, name } };
}

const never = buildBudget('web', { maxUnavailable: 0, selector: {} }, { observedGeneration: 0 });

test('the blocking budgets are told in alphabetical order, whatever the order of the pods is', () => {
  const budgets = ['c', 'a', 'b'].map((name) =>
    named(name, buildBudget(name, { maxUnavailable: 0 }, { observedGeneration: 0 })),
  );
  const pods = ['b', 'c', 'a'].map((app) => buildPod(`pod-${app}`, { labels: { app } }));
  expect(hopelessBudgets(pods, budgets).map(({ budget }) => budget)).toEqual([
    'default/a',
    'default/b',
    'default/c',
  ]);
});

test('of several budgets over one pod, the first in alphabetical order is told with the others', () => {
  const budgets = ['c', 'a', 'b'].map((name) => named(name, never));
  expect(hopelessBudgets([POD], budgets)).toEqual([
    {
      budget: 'default/a',
      pods: ['default/p'],
      reason:
        'its pods are also covered by PodDisruptionBudget default/b, default/c, and Kubernetes cannot evict a pod that more than one budget covers',
    },
  ]);
});

test('a pod without a status is not Ready, and counts as running', () => {
  const pod: Pod = { metadata: { name: 'p', namespace: 'default', labels } };
  expect(hopelessBudgets([pod], [never])).toHaveLength(1);
});

test('a pod that is not Ready may go if the budget has enough healthy pods without it', () => {
  const healthy = (currentHealthy: number, desiredHealthy: number): string[] =>
    reasonsOf(
      holdingBudgets(
        [UNREADY],
        [buildBudget('web', { minAvailable: 1 }, { currentHealthy, desiredHealthy })],
      ),
    );
  expect(healthy(2, 1)).toEqual([]);
  expect(healthy(1, 1)).toEqual([]);
  expect(healthy(0, 1)).toEqual(['it needs 1 healthy pods and has 0 currently']);
  expect(healthy(0, 0)).toEqual(['it needs 0 healthy pods and has 0 currently']);
});

test('a pod that is not Ready is blocked at this moment, unless its budget always allows that', () => {
  const policy = (unhealthyPodEvictionPolicy: 'AlwaysAllow' | 'IfHealthyBudget'): string[] =>
    reasonsOf(
      holdingBudgets(
        [UNREADY],
        [
          buildBudget(
            'web',
            { minAvailable: 1, unhealthyPodEvictionPolicy },
            { desiredHealthy: 1 },
          ),
        ],
      ),
    );
  expect(policy('AlwaysAllow')).toEqual([]);
  expect(policy('IfHealthyBudget')).toEqual(['it needs 1 healthy pods and has 0 currently']);
});

test('a Ready pod may go at this moment if its budget allows a disruption', () => {
  const allowed = (disruptionsAllowed: number): string[] =>
    reasonsOf(
      holdingBudgets(
        [POD],
        [buildBudget('web', { minAvailable: 1 }, { disruptionsAllowed, desiredHealthy: 1 })],
      ),
    );
  expect(allowed(1)).toEqual([]);
  expect(allowed(0)).toEqual(['it needs 1 healthy pods and has 0 currently']);
});

test('a budget without a status is still being processed', () => {
  const { status: _status, ...fresh } = buildBudget('web', { minAvailable: 1 });
  expect(reasonsOf(holdingBudgets([POD], [fresh]))).toEqual([
    'it is still being processed by the server',
  ]);
  const { generation: _generation, ...metadata } = fresh.metadata;
  expect(reasonsOf(holdingBudgets([POD], [{ ...fresh, metadata, status: {} }]))).toEqual([
    'it is still being processed by the server',
  ]);
});

test('only the condition DisruptionAllowed says that Kubernetes cannot count the pods', () => {
  const failing = (type: string, message?: string): string[] =>
    reasonsOf(
      hopelessBudgets(
        [POD],
        [
          buildBudget(
            'web',
            { minAvailable: 1 },
            {
              observedGeneration: 0,
              conditions: [
                { type: 'Other', status: 'True', reason: 'Fine' },
                {
                  type,
                  status: 'False',
                  reason: 'SyncFailed',
                  ...(message === undefined ? {} : { message }),
                },
              ],
            },
          ),
        ],
      ),
    );
  expect(failing('Unknown', 'no scale')).toEqual([]);
  expect(failing('DisruptionAllowed')).toEqual([
    'Kubernetes cannot count the pods that it should cover: its condition gives no reason',
  ]);
  expect(failing('DisruptionAllowed', 'no scale')).toEqual([
    'Kubernetes cannot count the pods that it should cover: no scale',
  ]);
});

test('an overdue pod names all its finalizers, and the next check is when the next pod is overdue', () => {
  const ending = (name: string, seconds: string, finalizers?: string[]): Pod =>
    buildPod(name, {
      metadata: {
        deletionTimestamp: `2026-01-01T00:00:${seconds}Z`,
        ...(finalizers === undefined ? {} : { finalizers }),
      },
    });
  const pods = [
    ending('b', '00', ['x.example/a', 'x.example/b']),
    ending('a', '00'),
    ending('c', '10'),
    ending('d', '20'),
  ];
  expect(findOverdue(pods, Date.UTC(2026, 0, 1, 0, 0, 30))).toEqual({
    text:
      'default/a should have ended by 2026-01-01T00:00:00Z (the kubelet has not reported that it ended); ' +
      'default/b should have ended by 2026-01-01T00:00:00Z (it waits for finalizers: x.example/a, x.example/b)',
    nextInMs: 10_000,
  });
  expect(findOverdue([ending('c', '10')], Date.UTC(2026, 0, 1))).toEqual({
    text: undefined,
    nextInMs: 40_000,
  });
  expect(findOverdue([], 0)).toEqual({ text: undefined, nextInMs: undefined });
});
