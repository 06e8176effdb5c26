/** Shows how pods and budgets with few fields count for the order of Nodes, and when the count ends. */
import { expect, test } from 'vitest';
import { buildBudget } from '../../test/support/builders/pods.ts';
import type { ListAllOptions } from '../kube/client.ts';
import type { KubeObject, Pod, PodDisruptionBudget, Resource } from '../kube/resources.ts';
import { countBudgetPods } from './budget-pods.ts';

const { signal: abort } = new AbortController();

async function countIn(pods: readonly Pod[], budgets: readonly PodDisruptionBudget[]) {
  const signals: unknown[] = [];
  const listAll = async <T extends KubeObject>(
    { plural }: Resource<T>,
    { transform = (object) => object, abort: signal }: ListAllOptions<T> = {},
  ) => {
    signals.push(signal);
    const objects: readonly KubeObject[] = plural === 'pods' ? pods : budgets;
    const items = objects.map((object) => transform(object as T));
    return await Promise.resolve({ metadata: {}, items });
  };
  const byNode = await countBudgetPods({ listAll }, abort);
  return { numbers: Object.fromEntries(byNode), signals };
}

test('both lists end when the caller aborts', async () => {
  const { signals } = await countIn([], [buildBudget('web', {})]);
  expect(signals).toHaveLength(2);
  for (const signal of signals) expect(signal).toBe(abort);
});

test('a pod without a Node or without a spec does not count', async () => {
  const metadata = { name: 'p', namespace: 'default', labels: { app: 'web' } };
  const { numbers } = await countIn(
    [{ metadata, spec: {} }, { metadata }],
    [buildBudget('web', {})],
  );
  expect(numbers).toEqual({});
});

test('a budget without a spec covers no pod', async () => {
  const pod = { metadata: { name: 'p', namespace: 'default' }, spec: { nodeName: 'n1' } };
  const { spec: _spec, ...budget } = buildBudget('web', {});
  expect((await countIn([pod], [budget])).numbers).toEqual({});
});

test('a budget covers only pods of its own namespace, also if a namespace is missing', async () => {
  const pod = { metadata: { name: 'p' }, spec: { nodeName: 'n1' } };
  const all = buildBudget('web', { selector: {} });
  expect((await countIn([pod], [all])).numbers).toEqual({});
  const { namespace: _namespace, ...metadata } = all.metadata;
  expect((await countIn([pod], [{ ...all, metadata }])).numbers).toEqual({ n1: 1 });
});
