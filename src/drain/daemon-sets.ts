/** Finds out whether the DaemonSet of a pod still exists: pods of a deleted one are evicted, as by kubectl. */

import type { KubeClient } from '../kube/client.ts';
import { keyOf } from '../kube/object-key.ts';
import { daemonSets } from '../kube/resources.ts';
import { isNotFound } from '../kube/status-error.ts';
import type { Pod } from '../kube/types.ts';
import { controllerOf, isDaemonPod } from './pods.ts';

/** Caches each answer: one request for each DaemonSet. */
export class DaemonSets {
  readonly #client: KubeClient;
  readonly #gone = new Map<string, boolean>();

  constructor(client: KubeClient) {
    this.#client = client;
  }

  /** Asks about DaemonSets that are not known yet. Rejects only when `abort` aborts. */
  async learn(pods: readonly Pod[], abort: AbortSignal): Promise<void> {
    const unknown = new Map(pods.filter(isDaemonPod).map((pod) => [setOf(pod), pod]));
    for (const key of this.#gone.keys()) unknown.delete(key);
    await Promise.all([...unknown].map(async ([key, pod]) => this.#gone.set(key, await this.#isGone(pod, abort))));
  }

  /** False for an unknown DaemonSet. */
  isOrphaned(pod: Pod): boolean {
    return this.#gone.get(setOf(pod)) ?? false;
  }

  /** No answer, or a refusal as for kubelets, counts as "it exists": then the pod stays, as pods of DaemonSets do. */
  async #isGone(pod: Pod, abort: AbortSignal): Promise<boolean> {
    const { namespace } = pod.metadata;
    const name = controllerOf(pod)?.name ?? '';
    try {
      await this.#client.get(daemonSets, name, { namespace, abort });
      return false;
    } catch (error) {
      abort.throwIfAborted();
      // Without a name the kind was not found: the server has no DaemonSets.
      return isNotFound(error) && error.status.details?.name === name;
    }
  }
}

function setOf(pod: Pod): string {
  return keyOf({ metadata: { name: controllerOf(pod)?.name ?? '', namespace: pod.metadata.namespace ?? '' } });
}
