/** The status of PodDisruptionBudgets, which a controller writes in a real cluster. */
import { isDeepStrictEqual } from 'node:util';
import type { Cluster } from '../cluster.ts';
import { selectorPredicate } from '../selector.ts';
import type { ApiObject, Change, Collection, Version } from '../store.ts';
import { isReady } from './pod-kind.ts';

/** The members of a PodDisruptionBudget that are read or computed here. */
export interface Budget extends ApiObject {
  spec: {
    minAvailable?: number | string;
    maxUnavailable?: number | string;
    selector?: unknown;
    unhealthyPodEvictionPolicy?: string;
  };
  status: {
    observedGeneration?: number;
    disruptionsAllowed: number;
    currentHealthy: number;
    desiredHealthy: number;
    expectedPods: number;
    conditions?: { type: string; status: string; lastTransitionTime: string }[];
  };
}

/** Recomputes the budgets of a namespace whenever one of its pods or budgets changed. */
export function keepBudgets(cluster: Cluster): void {
  const pods = cluster.resource('', 'pods').collection;
  const budgets = cluster.resource('policy', 'poddisruptionbudgets').collection;
  const pending = new Set<string>();
  const onChange = ({ version }: Change): void => {
    const { namespace = '' } = version.object.metadata;
    if (budgets.size === 0 || pending.has(namespace)) return;
    pending.add(namespace);
    cluster.defer(() => {
      pending.delete(namespace);
      for (const budget of within(budgets, namespace))
        update(cluster, budgets, budget, within(pods, namespace));
    });
  };
  pods.listeners.add(onChange);
  budgets.listeners.add(onChange);
}

const within = (collection: Collection, namespace: string): Version[] =>
  [...collection.values()].filter(({ object }) => object.metadata.namespace === namespace);

/** Returns the PodDisruptionBudgets that select the pod. */
export function budgetsOf(cluster: Cluster, pod: ApiObject): Version[] {
  const { collection } = cluster.resource('policy', 'poddisruptionbudgets');
  const own = within(collection, pod.metadata.namespace ?? '');
  return own.filter(({ object }) => selectorPredicate((object as Budget).spec.selector)(pod));
}

function update(
  cluster: Cluster,
  budgets: Collection,
  version: Version,
  pods: readonly Version[],
): void {
  const budget = version.object as Budget;
  const guarded = pods.map(({ object }) => object).filter(selectorPredicate(budget.spec.selector));
  const healthy = guarded.filter(
    (pod) => isReady(pod) && pod.metadata.deletionTimestamp === undefined,
  ).length;
  const desired = desiredHealthy(budget.spec, guarded.length);
  const allowed = guarded.length === 0 ? 0 : Math.max(0, healthy - desired);
  const { generation = 1 } = budget.metadata;
  const state = allowed > 0 ? 'True' : 'False';
  const present = budget.status.conditions?.[0];
  const condition = {
    type: 'DisruptionAllowed',
    status: state,
    observedGeneration: generation,
    lastTransitionTime:
      present?.status === state ? present.lastTransitionTime : cluster.timestamp(),
    reason: allowed > 0 ? 'SufficientPods' : 'InsufficientPods',
    message: '',
  };
  const status = {
    observedGeneration: generation,
    disruptionsAllowed: allowed,
    currentHealthy: healthy,
    desiredHealthy: desired,
    expectedPods: guarded.length,
    conditions: [condition],
  };
  if (isDeepStrictEqual(status, budget.status)) return;
  budgets.put(version.key, { ...structuredClone(budget), status });
}

/**
 * Counts the existing pods. The real controller instead reads from the owners of the pods how many pods there should
 * be.
 */
function desiredHealthy({ minAvailable, maxUnavailable }: Budget['spec'], pods: number): number {
  const scaled = (value: number | string): number =>
    typeof value === 'number' ? value : Math.ceil((Number.parseInt(value, 10) * pods) / 100);
  return maxUnavailable === undefined
    ? scaled(minAvailable ?? 1)
    : Math.max(0, pods - scaled(maxUnavailable));
}
