/**
 * Previews what a drain would evict and what would block it, and reports the progress of drains that another process
 * runs.
 */
import type { KubeClient } from '../kube/client.ts';
import {
  type KubeList,
  type PodDisruptionBudget,
  podDisruptionBudgets,
  pods,
} from '../kube/resources.ts';
import { defined } from '../util/json.ts';
import * as blocking from './budgets.ts';
import { type DrainProgress, progressOf } from './drain-node.ts';
import { podRulesOf } from './pod-rules.ts';
import { type DrainOptions, daemonSetsOf, type RefusedPod, sortPods } from './pods.ts';
import {
  describeUnknownVolumes,
  describeVolumes,
  leftVolumesOf,
  type VolumesAsked,
} from './volumes.ts';

export interface DrainPreview {
  /** The number of pods that the drain would evict or delete, including terminating pods. */
  readonly evictable: number;
  /** The budgets that would block the drain even while all pods that they cover are healthy. */
  readonly obstacles: readonly blocking.BlockingBudget[];
  /** The pods that the options forbid to evict. */
  readonly refused: readonly RefusedPod[];
}

/** Returns true if the drain cannot end unless somebody changes something, for example an operator that sees the cordon. */
export function hasObstacles({ obstacles, refused }: DrainPreview): boolean {
  return obstacles.length + refused.length > 0;
}

/**
 * Returns true if the drain must not start. Pods that the options forbid to evict always prevent the start, because
 * somebody chose these options. Budgets prevent it only if the policy waits for budgets: an operator may change a budget
 * when it sees the cordon or the eviction.
 */
export function isHeldBack(
  { obstacles, refused }: DrainPreview,
  { waitsForBudgets = false }: { readonly waitsForBudgets?: boolean },
): boolean {
  return refused.length > 0 || (waitsForBudgets && obstacles.length > 0);
}

export interface DrainPreviewer {
  /** Returns what a drain of the node would do if it began now. */
  readonly ahead: (nodeName: string, options: DrainOptions) => Promise<DrainPreview>;
  /** Returns the progress of a drain that another process runs. `now` is in milliseconds since the Unix epoch. */
  readonly during: (nodeName: string, options: DrainOptions, now: number) => Promise<DrainProgress>;
}

/**
 * Lists the pods of each node at each call, and requests the budgets and each DaemonSet only once. Its functions reject
 * if the API server refuses a request. The caller must not treat such an error as "nothing blocks the drain".
 */
export function drainPreviewer(client: KubeClient, abort: AbortSignal): DrainPreviewer {
  const leftVolumes = leftVolumesOf(client);
  const daemonSets = daemonSetsOf(client);
  let known: Promise<KubeList<PodDisruptionBudget>> | undefined;
  const look = async (nodeName: string, options: DrainOptions) => {
    // The pods come from the cache of the API server, which is good enough for a forecast. A consistent read takes the API server up to 100
    // ms.
    const fieldSelector = `spec.nodeName=${nodeName}`;
    const { items } = await client.listAll(pods, { fieldSelector, resourceVersion: '0', abort });
    const rules = podRulesOf(client, options.podRules);
    await Promise.all([daemonSets.learn(items, abort), rules.learn(items, abort)]);
    const sorted = sortPods(items, options, { ...daemonSets, ...rules });
    if (sorted.evict.length === 0) return { ...sorted, items, budgets: [] };
    known ??= client.listAll(podDisruptionBudgets, { abort });
    return { ...sorted, items, budgets: (await known).items };
  };
  const detachingFrom = async (...asked: VolumesAsked): Promise<string | undefined> => {
    const claims = await leftVolumes(...asked).catch(describeUnknownVolumes);
    if (typeof claims === 'string') return `waiting for volumes to detach: ${claims}`;
    return claims.length === 0 ? undefined : describeVolumes(claims);
  };
  return {
    async ahead(nodeName, options) {
      const { evict, ending, refused, budgets } = await look(nodeName, options);
      return {
        evictable: evict.length + ending.length,
        obstacles: options.deletes === true ? [] : blocking.hopelessBudgets(evict, budgets),
        refused,
      };
    },
    async during(nodeName, options, now) {
      const { evict, ending, awaited, items, budgets } = await look(nodeName, options);
      const left = [...evict, ...ending, ...awaited];
      if (left.length === 0 && options.detachMs !== undefined)
        return defined({ left: 0, detaching: await detachingFrom(nodeName, items, abort) });
      const holding = blocking.holdingBudgets(evict, budgets);
      const progress = progressOf(
        left,
        ...holding.map(blocking.describeBlockingBudget),
        blocking.describeAwaited(awaited),
        blocking.findOverdue(ending, now).text,
      );
      if (holding.length === 0) return progress;
      return { ...progress, budgets: holding.map(({ budget }) => budget) };
    },
  };
}
