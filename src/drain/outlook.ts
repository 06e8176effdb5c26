/** Owns looking on: what the drain of a node would do and what would stop it, and how far one is that somebody else carries out. */
import type { KubeClient } from '../kube/client.ts';
import { podDisruptionBudgets, pods } from '../kube/resources.ts';
import type { PodDisruptionBudget } from '../kube/types.ts';
import { holdingBudgets, hopelessBudgets, type Obstacle, tellObstacle } from './budgets.ts';
import { DaemonSets } from './daemon-sets.ts';
import type { DrainProgress } from './drain.ts';
import type { DrainOptions } from './options.ts';
import { findOverdue } from './overdue.ts';
import { type RefusedPod, type SortedPods, sortPods } from './pods.ts';

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
  const { evict, ending, refused, budgets } = await lookAt(client, nodeName, options, signal);
  return { evictable: evict.length + ending.length, obstacles: hopelessBudgets(evict, budgets), refused };
}

/**
 * How far a drain is that somebody else carries out, as far as pods and budgets tell; `now` in milliseconds since the
 * Unix epoch. Reads only, and rejects as `lookAhead` does.
 */
export async function lookAtDrain(
  client: KubeClient,
  nodeName: string,
  options: DrainOptions,
  now: number,
  signal: AbortSignal,
): Promise<DrainProgress> {
  const { evict, ending, budgets } = await lookAt(client, nodeName, options, signal);
  const { text } = findOverdue(ending, now);
  const blocks = [...holdingBudgets(evict, budgets).map(tellObstacle), ...(text === undefined ? [] : [text])];
  const left = evict.length + ending.length;
  return { left, ...(blocks.length === 0 ? {} : { blockedBy: blocks.join('; ') }) };
}

interface Sight extends SortedPods {
  readonly budgets: readonly PodDisruptionBudget[];
}

async function lookAt(
  client: KubeClient,
  nodeName: string,
  options: DrainOptions,
  signal: AbortSignal,
): Promise<Sight> {
  const { items } = await client.listAll(pods, { fieldSelector: `spec.nodeName=${nodeName}`, signal });
  const daemonSets = new DaemonSets(client);
  await daemonSets.learn(items, signal);
  const sorted = sortPods(items, options, (pod) => daemonSets.isOrphan(pod));
  const budgets = sorted.evict.length === 0 ? [] : (await client.listAll(podDisruptionBudgets, { signal })).items;
  return { ...sorted, budgets };
}
