/**
 * Tests which pods count for the order of Nodes: the pods that a drain evicts and that a PodDisruptionBudget covers.
 * They are counted by Node.
 */
import { expect, test } from 'vitest';
import { buildBudget, buildPod, type PodTraits } from '../../test/support/builders/pods.ts';
import type { ListAllOptions } from '../kube/client.ts';
import type { KubeObject, Pod, PodDisruptionBudget, Resource } from '../kube/resources.ts';
import { countBudgetPods } from './budget-pods.ts';

const { signal: abort } = new AbortController();
const labels = { app: 'web' };

/** Resolves with the numbers by Node, and with the pods as the client kept them after the transform. */
async function countIn(all: readonly Pod[], budgets: readonly PodDisruptionBudget[]) {
  const kept: KubeObject[] = [];
  const lists: string[] = [];
  const listAll = async <T extends KubeObject>(
    { plural }: Resource<T>,
    { transform = (object) => object }: ListAllOptions<T> = {},
  ) => {
    lists.push(plural);
    const objects: readonly KubeObject[] = plural === 'pods' ? all : budgets;
    const items = objects.map((object) => transform(object as T));
    if (plural === 'pods') kept.push(...items);
    return await Promise.resolve({ metadata: {}, items });
  };
  const byNode = await countBudgetPods({ listAll }, abort);
  return { numbers: Object.fromEntries(byNode), kept, lists };
}

test.each<[string, PodTraits, number | undefined]>([
  ['one of a ReplicaSet', { labels }, 1],
  ['a bare pod', { labels, controller: null }, 1],
  ['one that no budget selects', { labels: { app: 'db' } }, undefined],
  ['one of another namespace', { labels, namespace: 'other' }, undefined],
  ['one that no Node has yet', { labels, node: '' }, undefined],
  ['one of a DaemonSet', { labels, controller: 'DaemonSet/ds' }, undefined],
  ['one that has ended', { labels, phase: 'Succeeded' }, undefined],
  [
    'a static pod',
    { labels, metadata: { annotations: { 'kubernetes.io/config.mirror': 'x' } } },
    undefined,
  ],
])('%s', async (_name, traits, number) => {
  const { numbers } = await countIn([buildPod('p1', traits)], [buildBudget('web', {})]);
  expect(numbers).toEqual(number === undefined ? {} : { n1: number });
});

test('a pod that two budgets cover counts once, and each Node has its own number', async () => {
  const found = await countIn(
    ['n1', 'n2', 'n2'].map((node, index) => buildPod(`p${index}`, { labels, node })),
    [buildBudget('web', {}), buildBudget('web', {})],
  );
  expect(found.numbers).toEqual({ n1: 1, n2: 2 });
});

test('no pod is kept', async () => {
  const { kept } = await countIn([buildPod('p1', { labels })], [buildBudget('web', {})]);
  expect(kept.map((pod) => Object.keys(pod))).toEqual([['metadata']]);
});

test('without budgets the pods are not listed', async () => {
  const { numbers, lists } = await countIn([buildPod('p1', { labels })], []);
  expect([numbers, lists]).toEqual([{}, ['poddisruptionbudgets']]);
});
