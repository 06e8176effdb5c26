/** Withdraws EvictionRequests that a drain has left, for example because its process was killed. */
import type { KubeClient } from '../kube/client.ts';
import { keyOf, nodes } from '../kube/resources.ts';
import { ifFound } from '../kube/status-error.ts';
import type { Logger } from '../util/log.ts';
import { drainedNode, evictionRequests, REQUESTER } from './eviction-request-objects.ts';

interface Parts {
  readonly client: KubeClient;
  readonly log: Logger;
  readonly abort: AbortSignal;
}

/**
 * Deletes the requests whose node is schedulable again or gone: every drain begins after a cordon and ends before the uncordon, so no
 * drain of any process needs them. A request without the name of a node stays.
 */
export async function withdrawLeftRequests({ client, log, abort }: Parts): Promise<void> {
  const { items } = await client.listAll(evictionRequests, { labelSelector: REQUESTER, abort });
  for (const [node, requests] of Map.groupBy(items, drainedNode)) {
    if (node === undefined) continue;
    const found = await ifFound(client.get(nodes, node, { abort }));
    if (found?.spec?.unschedulable === true) continue;
    for (const request of requests) {
      const { name, namespace, uid } = request.metadata;
      await ifFound(client.delete(evictionRequests, name, { namespace, uid, abort }));
      log.info('left EvictionRequest withdrawn', { request: keyOf(request), node });
    }
  }
}
