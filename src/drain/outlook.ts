/** Owns looking ahead: what the drain of a node would do, and what would stop it, before anything is touched. */
import type { KubeClient } from '../kube/client.ts';
import { podDisruptionBudgets, pods } from '../kube/resources.ts';
import { hopelessBudgets, type Obstacle } from './budgets.ts';
import { DaemonSets } from './daemon-sets.ts';
import type { DrainOptions } from './options.ts';
import { type RefusedPod, sortPods } from './pods.ts';

export interface Outlook {
  /** Pods that the drain would evict, those on their way out included. */
  readonly evictable: number;
  readonly obstacles: readonly Obstacle[];
  readonly refused: readonly RefusedPod[];
}

/** Reads only. Rejects with what the API server refuses: no answer must not look like no obstacle. */
export async function lookAhead(
  client: KubeClient,
  nodeName: string,
  options: DrainOptions,
  signal: AbortSignal,
): Promise<Outlook> {
  const { items } = await client.listAll(pods, { fieldSelector: `spec.nodeName=${nodeName}`, signal });
  const daemonSets = new DaemonSets(client);
  await daemonSets.learn(items, signal);
  const { evict, ending, refused } = sortPods(items, options, (pod) => daemonSets.isOrphan(pod));
  const budgets = evict.length === 0 ? [] : (await client.listAll(podDisruptionBudgets, { signal })).items;
  return { evictable: evict.length + ending.length, obstacles: hopelessBudgets(evict, budgets), refused };
}
