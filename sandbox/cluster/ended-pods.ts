/**
 * Removes deleted pods after their grace period, as the kubelet of their node does. Without it, `kubectl delete pod` and
 * `kubectl drain` would wait for a kubelet that does not exist.
 */
import type { KubeClient } from '../../src/kube/client.ts';
import { type Pod, pods } from '../../src/kube/resources.ts';
import { isConflict, isNotFound } from '../../src/kube/status-error.ts';
import { createInformer } from '../../src/kube/watch/informer.ts';
import { systemClock } from '../../src/util/clock.ts';

/** Runs until it is disposed. */
export function removeEndedPods(client: KubeClient): AsyncDisposable {
  const end = new AbortController();
  const timers = new Map<string, () => void>();
  const removals = new Set<Promise<void>>();
  const follow = ({ metadata }: Pod): void => {
    const { name, namespace, uid = '', deletionTimestamp } = metadata;
    if (deletionTimestamp === undefined) return;
    const remove = (): void => {
      const removal = client
        .delete(pods, name, { namespace, uid, gracePeriodSeconds: 0 })
        // If the pod is gone, or if another pod has its name now, there is nothing to remove.
        .catch((error: unknown) => {
          if (!isNotFound(error) && !isConflict(error) && !end.signal.aborted) throw error;
        })
        .finally(() => removals.delete(removal));
      removals.add(removal);
    };
    // A second deletion can shorten the grace period.
    timers.get(uid)?.();
    const left = Math.max(0, Date.parse(deletionTimestamp) - systemClock.now());
    timers.set(uid, systemClock.schedule(left, remove));
  };
  const forget = ({ metadata: { uid = '' } }: Pod): void => {
    timers.get(uid)?.();
    timers.delete(uid);
  };
  const informer = createInformer(client, pods);
  informer.addHandler({ added: follow, updated: follow, deleted: forget });
  const following = informer.run(end.signal);
  return {
    async [Symbol.asyncDispose]() {
      for (const cancel of timers.values()) cancel();
      end.abort();
      await Promise.all([following, ...removals]);
    },
  };
}
