/** Owns the question whether the DaemonSet of a pod still exists: kubectl and Refit evict the pods of one that is gone. */

import type { KubeClient } from '../kube/client.ts';
import { keyOf } from '../kube/object-key.ts';
import { daemonSets } from '../kube/resources.ts';
import { isNotFound } from '../kube/status-error.ts';
import type { Pod } from '../kube/types.ts';
import { controllerOf, isDaemonPod } from './pods.ts';

/** Remembers each answer: one question for each DaemonSet of a node. */
export class DaemonSets {
  readonly #client: KubeClient;
  readonly #gone = new Map<string, boolean>();

  constructor(client: KubeClient) {
    this.#client = client;
  }

  /** Asks about those of `pods` that are not known yet. Rejects only where `signal` aborts. */
  async learn(pods: readonly Pod[], abort: AbortSignal): Promise<void> {
    const unknown = new Map(pods.filter(isDaemonPod).map((pod) => [setOf(pod), pod]));
    for (const key of this.#gone.keys()) unknown.delete(key);
    await Promise.all([...unknown].map(async ([key, pod]) => this.#gone.set(key, await this.#isGone(pod, abort))));
  }

  /** False where nobody has asked. */
  isOrphaned(pod: Pod): boolean {
    return this.#gone.get(setOf(pod)) ?? false;
  }

  /** A kubelet may not ask. No answer, or a refusal, counts as "it exists": then the pod stays, as those of DaemonSets do. */
  async #isGone(pod: Pod, abort: AbortSignal): Promise<boolean> {
    const { namespace } = pod.metadata;
    const name = controllerOf(pod)?.name ?? '';
    try {
      await this.#client.get(daemonSets, name, { namespace, abort });
      return false;
    } catch (error) {
      abort.throwIfAborted();
      // Without a name it is the kind that was not found, by a server that knows no DaemonSets.
      return isNotFound(error) && error.status.details?.name === name;
    }
  }
}

function setOf(pod: Pod): string {
  return keyOf({ metadata: { name: controllerOf(pod)?.name ?? '', namespace: pod.metadata.namespace ?? '' } });
}
