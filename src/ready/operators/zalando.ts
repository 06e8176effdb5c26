/** Judges the clusters of the Postgres operator of Zalando by the budgets that it keeps for their primaries. */
import {
  keyAt,
  keyOf,
  type Pod,
  type PodDisruptionBudget,
  podDisruptionBudgets,
  pods,
  readyCondition,
} from '../../kube/resources.ts';
import { matchesLabels } from '../../kube/selectors.ts';
import type { ReadResult } from '../asking.ts';
import { slimPod } from '../pods.ts';
import {
  type Custom,
  isCount,
  type Judge,
  type Operator,
  of,
  selectedLabel,
  unclear,
} from './operator.ts';

/** Patroni writes the role of an instance into this label of its pod. */
const ROLE = 'spilo-role';

export const ZALANDO: Operator = {
  name: 'the Postgres operator of Zalando',
  resource: of('acid.zalan.do/v1', 'postgresql'),
  noun: 'cluster',
  expect:
    'it moves a primary to a ready replica when its node is cordoned, unless the node has the readiness label of the operator',
  judgeOf: async ({ list }) => {
    const [budgets, all] = await Promise.all([
      list(podDisruptionBudgets),
      list(pods, { slim: slimPod }),
    ]);
    return judgeBy(budgets, all);
  },
  keeps: keepsFor,
};

/**
 * Returns a function that returns true for a budget of the primary of one of these clusters. The operator writes an owner
 * into its budgets only if its configuration says so, and the key of the label with the name of the cluster may be any.
 */
function keepsFor(
  objects: readonly Pick<Custom, 'metadata'>[] | undefined,
): (budget: PodDisruptionBudget) => boolean {
  const names = objects && new Set(objects.map(keyOf));
  return (budget) => {
    if (selectedLabel(budget, ROLE) === undefined) return false;
    const values = Object.values(budget.spec?.selector?.matchLabels ?? {});
    const { namespace } = budget.metadata;
    return names === undefined || values.some((value) => names.has(keyAt(value, namespace)));
  };
}

function judgeBy(
  budgets: ReadResult<readonly PodDisruptionBudget[]>,
  all: ReadResult<readonly Pod[]>,
): Judge {
  return (cluster) => {
    const instances = cluster.spec['numberOfInstances'];
    if (!isCount(instances))
      return unclear('how many instances it has: spec.numberOfInstances is no number');
    if (instances < 1) return undefined;
    if (budgets.kind === 'unknown')
      return unclear(`whether a budget lets its primary go: ${budgets.why}`);
    const isKept = keepsFor([cluster]);
    const strict = budgets.value.filter((budget) => isKept(budget) && asksForAll(budget));
    if (strict.length === 0) return undefined;
    if (instances === 1)
      return {
        state: 'blocker',
        message: 'it has one instance, and the budget of its primary never lets this instance go',
        cure: 'run a second instance, or set enable_pod_disruption_budget: false of the operator during the upgrade',
      };
    if (all.kind === 'unknown')
      return unclear(`whether a replica can become its primary: ${all.why}`);
    const own = all.value.filter(
      (pod) =>
        pod.metadata.namespace === cluster.metadata.namespace && Object.hasOwn(labelsOf(pod), ROLE),
    );
    return strict.some((budget) => lacksReplica(budget, own))
      ? {
          state: 'blocker',
          message:
            'no replica of it is ready to become the primary, and its budget does not let the primary go',
          cure: 'let a replica become ready first',
        }
      : undefined;
  };
}

/** Returns true if the budget lets no pod go that is the only one of its role. */
function asksForAll({ spec: { minAvailable, maxUnavailable } = {} }: PodDisruptionBudget): boolean {
  // A percentage of one pod is rounded up, so every value but zero counts as one.
  if (minAvailable !== undefined) return Number.parseInt(String(minAvailable), 10) !== 0;
  return maxUnavailable === undefined || Number.parseInt(String(maxUnavailable), 10) === 0;
}

/** Returns true if the budget covers the primary, and no other instance of the same cluster is ready. */
function lacksReplica({ spec }: PodDisruptionBudget, candidates: readonly Pod[]): boolean {
  const { [ROLE]: _role, ...matchLabels } = spec?.selector?.matchLabels ?? {};
  const instances = candidates.filter((pod) => matchesLabels({ matchLabels }, labelsOf(pod)));
  const covered = new Set(instances.filter((pod) => matchesLabels(spec?.selector, labelsOf(pod))));
  const hasReady = instances.some(
    (pod) => !covered.has(pod) && readyCondition(pod)?.status === 'True',
  );
  return covered.size > 0 && !hasReady;
}

function labelsOf({ metadata: { labels = {} } }: Pod): Record<string, string> {
  return labels;
}
