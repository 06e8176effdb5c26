/** Owns looking on: what the drain of a node would do and what would stop it, and how far one is that somebody else carries out. */
import type { KubeClient } from '../kube/client.ts';
import { podDisruptionBudgets, pods } from '../kube/resources.ts';
import type { PodDisruptionBudget } from '../kube/types.ts';
import { type BlockingBudget, describeBlockingBudget, holdingBudgets, hopelessBudgets } from './budgets.ts';
import { DaemonSets } from './daemon-sets.ts';
import type { DrainProgress } from './drain.ts';
import { findOverdue } from './overdue.ts';
import { type DrainOptions, type RefusedPod, type SortedPods, sortPods } from './pods.ts';

export interface DrainPreview {
  /** Pods that the drain would evict, those on their way out included. */
  readonly evictable: number;
  readonly obstacles: readonly BlockingBudget[];
  readonly refused: readonly RefusedPod[];
}

/**
 * One look at any number of nodes: budgets, which are the same for all of them, are listed once, and only where a pod is to
 * go. Reads only. Rejects with what the API server refuses: no answer must not look like no obstacle.
 */
export class DrainPreviewer {
  readonly #client: KubeClient;
  readonly #abort: AbortSignal;
  #budgets: Promise<readonly PodDisruptionBudget[]> | undefined;

  constructor(client: KubeClient, abort: AbortSignal) {
    this.#client = client;
    this.#abort = abort;
  }

  async ahead(nodeName: string, options: DrainOptions): Promise<DrainPreview> {
    const { evict, ending, refused, budgets } = await this.#at(nodeName, options);
    return { evictable: evict.length + ending.length, obstacles: hopelessBudgets(evict, budgets), refused };
  }

  /**
   * How far a drain is that somebody else carries out, as far as pods and budgets tell; `now` in milliseconds since the
   * Unix epoch.
   */
  async during(nodeName: string, options: DrainOptions, now: number): Promise<DrainProgress> {
    const { evict, ending, budgets } = await this.#at(nodeName, options);
    const { text } = findOverdue(ending, now);
    const blocks = [
      ...holdingBudgets(evict, budgets).map(describeBlockingBudget),
      ...(text === undefined ? [] : [text]),
    ];
    const left = evict.length + ending.length;
    return { left, ...(blocks.length === 0 ? {} : { blockedBy: blocks.join('; ') }) };
  }

  async #at(nodeName: string, options: DrainOptions): Promise<ObservedState> {
    const [client, abort] = [this.#client, this.#abort];
    const { items } = await client.listAll(pods, { fieldSelector: `spec.nodeName=${nodeName}`, abort });
    const daemonSets = new DaemonSets(client);
    await daemonSets.learn(items, abort);
    const sorted = sortPods(items, options, (pod) => daemonSets.isOrphaned(pod));
    return { ...sorted, budgets: sorted.evict.length === 0 ? [] : await (this.#budgets ??= this.#listBudgets()) };
  }

  async #listBudgets(): Promise<readonly PodDisruptionBudget[]> {
    return (await this.#client.listAll(podDisruptionBudgets, { abort: this.#abort })).items;
  }
}

interface ObservedState extends SortedPods {
  readonly budgets: readonly PodDisruptionBudget[];
}
