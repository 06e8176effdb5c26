/** Previews what a drain would evict and what would block it, and observes drains that somebody else does. */
import type { KubeClient } from '../kube/client.ts';
import {
  type KubeList,
  type PodDisruptionBudget,
  podDisruptionBudgets,
  pods,
} from '../kube/resources.ts';
import * as blocking from './budgets.ts';
import { type DrainProgress, progressOf } from './drain-node.ts';
import { podRulesOf } from './pod-rules.ts';
import { type DrainOptions, daemonSetsOf, type RefusedPod, sortPods } from './pods.ts';

export interface DrainPreview {
  /** Pods that the drain would evict, terminating ones included. */
  readonly evictable: number;
  readonly obstacles: readonly blocking.BlockingBudget[];
  readonly refused: readonly RefusedPod[];
}

/** Observes nodes once, and asks once for the budgets and for each DaemonSet. Rejects when the API server refuses: that is no "nothing blocks". */
export function drainPreviewer(client: KubeClient, abort: AbortSignal) {
  const daemonSets = daemonSetsOf(client);
  let known: Promise<KubeList<PodDisruptionBudget>> | undefined;
  const look = async (nodeName: string, options: DrainOptions) => {
    // For a forecast the cache will do: to make sure that nothing is newer takes an API server up to 100 ms.
    const fieldSelector = `spec.nodeName=${nodeName}`;
    const { items } = await client.listAll(pods, { fieldSelector, resourceVersion: '0', abort });
    const rules = podRulesOf(client, options.podRules);
    await Promise.all([daemonSets.learn(items, abort), rules.learn(items, abort)]);
    const sorted = sortPods(items, options, { ...daemonSets, ...rules });
    if (sorted.evict.length === 0) return { ...sorted, budgets: [] };
    known ??= client.listAll(podDisruptionBudgets, { abort });
    return { ...sorted, budgets: (await known).items };
  };
  return {
    async ahead(nodeName: string, options: DrainOptions): Promise<DrainPreview> {
      const { evict, ending, refused, budgets } = await look(nodeName, options);
      return {
        evictable: evict.length + ending.length,
        obstacles: blocking.hopelessBudgets(evict, budgets),
        refused,
      };
    },
    /** Progress of a drain that somebody else does, from pods and budgets; `now` in milliseconds since the Unix epoch. */
    async during(nodeName: string, options: DrainOptions, now: number): Promise<DrainProgress> {
      const { evict, ending, awaited, budgets } = await look(nodeName, options);
      const blocks = blocking.holdingBudgets(evict, budgets).map(blocking.describeBlockingBudget);
      return progressOf(
        [...evict, ...ending, ...awaited],
        ...blocks,
        blocking.describeAwaited(awaited),
        blocking.findOverdue(ending, now).text,
      );
    },
  };
}

export type DrainPreviewer = ReturnType<typeof drainPreviewer>;
