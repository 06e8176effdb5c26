/**
 * Counts for each Node the pods that a PodDisruptionBudget covers. The rules of policies and Plans about which pods a
 * drain evicts are not applied.
 */
import type { KubeClient } from '../kube/client.ts';
import {
  type Pod,
  type PodDisruptionBudget,
  podDisruptionBudgets,
  pods,
} from '../kube/resources.ts';
import { labelMatcher } from '../kube/selectors.ts';
import { isDaemonPod, isFinished, isMirrorPod } from './pods.ts';

/** What is known of the pods that PodDisruptionBudgets cover. */
export interface BudgetPods {
  /**
   * The number of these pods by the name of the Node. It lacks Nodes without such pods, and is undefined if no attempt to count has
   * succeeded.
   */
  readonly byNode?: ReadonlyMap<string, number> | undefined;
  /** Why the last attempt to count failed; undefined if it succeeded. */
  readonly problem?: string | undefined;
}

/**
 * A placeholder that replaces each counted pod in the list, so that the pods of a large cluster do not stay in memory.
 */
const COUNTED: Pod = { metadata: { name: '' } };

/**
 * Counts the pods by the name of their Node. Pods that a drain leaves on the Node are not counted: pods of DaemonSets,
 * static pods, and pods that have ended. Rejects if the API server refuses one of the lists.
 */
export async function countBudgetPods(
  client: Pick<KubeClient, 'listAll'>,
  abort: AbortSignal,
): Promise<ReadonlyMap<string, number>> {
  const byNode = new Map<string, number>();
  const { items: budgets } = await client.listAll(podDisruptionBudgets, { abort });
  const isCovered = coverageOf(budgets);
  const count = (pod: Pod): Pod => {
    const node = pod.spec?.nodeName ?? '';
    if (node !== '' && isCovered(pod)) byNode.set(node, (byNode.get(node) ?? 0) + 1);
    return COUNTED;
  };
  if (budgets.length > 0) await client.listAll(pods, { transform: count, abort });
  return byNode;
}

/** Returns a function that returns true if one of the budgets covers the pod, and a drain does not leave the pod on its Node. */
function coverageOf(budgets: readonly PodDisruptionBudget[]): (pod: Pod) => boolean {
  const byNamespace = new Map<string, ReturnType<typeof labelMatcher>[]>();
  for (const { metadata, spec } of budgets)
    byNamespace.getOrInsert(metadata.namespace ?? '', []).push(labelMatcher(spec?.selector));
  return (pod) => {
    const matchers = byNamespace.get(pod.metadata.namespace ?? '') ?? [];
    const isLeft = isFinished(pod) || isDaemonPod(pod) || isMirrorPod(pod);
    return !isLeft && matchers.some((matches) => matches(pod.metadata.labels));
  };
}
