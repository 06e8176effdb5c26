/**
 * Simulates the cluster around evicted pods. A kubelet ends each pod after a given time, and no controller replaces it.
 */
import type { Caller, KubeClient } from '../../src/kube/client.ts';
import { type Pod, pathOf, pods } from '../../src/kube/resources.ts';
import { clientOver } from '../../src/kube/transport/http-client.ts';
import { createInformer } from '../../src/kube/watch/informer.ts';
import { type Clock, sleep } from '../../src/util/clock.ts';

/** Creates pods on the node. Each pod has a ReplicaSet as its owner. */
export async function placePods(client: KubeClient, node: string, count: number): Promise<void> {
  const owner = {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    name: 'web',
    uid: 'web',
    controller: true,
  };
  for (let index = 0; index < count; index++) {
    const metadata = {
      name: `${node.split('.')[0]}-${index}`,
      namespace: 'default',
      ownerReferences: [owner],
    };
    const spec = { nodeName: node, containers: [{ name: 'web', image: 'web:1' }] };
    const created = await client.create<Pod>(pods, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata,
      spec,
    });
    const status: NonNullable<Pod['status']> = {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: 'True' }],
    };
    await client.replace(pods, { ...created, status }, { subresource: 'status' });
  }
}

/** Removes every pod `ms` milliseconds after its deletion began, until `abort` aborts. */
export async function endPods(
  caller: Caller,
  ms: number,
  clock: Clock,
  abort: AbortSignal,
): Promise<void> {
  const informer = createInformer(clientOver(caller), pods, { clock });
  const ending = new Set<Promise<void>>();
  informer.addHandler({
    updated: (pod, before) => {
      if (
        pod.metadata.deletionTimestamp === undefined ||
        before.metadata.deletionTimestamp !== undefined
      )
        return;
      const gone = end(caller, pod, ms, clock, abort).finally(() => ending.delete(gone));
      ending.add(gone);
    },
  });
  await informer.run(abort);
  await Promise.all(ending);
}

/**
 * Deletes the pod with a grace period of 0. The API server then removes it at once, as when a kubelet reports that the
 * pod has ended.
 */
async function end(
  caller: Caller,
  pod: Pod,
  ms: number,
  clock: Clock,
  abort: AbortSignal,
): Promise<void> {
  const { name, namespace } = pod.metadata;
  const body = { apiVersion: 'v1', kind: 'DeleteOptions', gracePeriodSeconds: 0 };
  const path = pathOf(pods, { namespace, name });
  try {
    await sleep(clock, ms, abort);
    await caller.json({
      verb: 'delete',
      resource: 'pods',
      method: 'DELETE',
      path,
      body,
      deadlineMs: 1000,
    });
  } catch (error) {
    if (!abort.aborted) throw error;
  }
}
