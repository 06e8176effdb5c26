/** Withdraws EvictionRequests that a drain has left, for example because its process was killed. */
import type { KubeClient } from '../kube/client.ts';
import { keyOf, nodes } from '../kube/resources.ts';
import { ifFound } from '../kube/status-error.ts';
import type { Logger } from '../util/log.ts';
import {
  drainedNode,
  type EvictionRequest,
  evictionRequests,
  REQUESTER,
} from './eviction-request-objects.ts';

interface Parts {
  readonly client: KubeClient;
  readonly log: Logger;
  readonly abort: AbortSignal;
  /** This function is called once at the end with the errors of the requests that could not be withdrawn. */
  readonly onFailures: (errors: readonly unknown[]) => void;
}

/**
 * Deletes the requests whose node is schedulable again or no longer exists. No drain of any process needs these
 * requests, because every drain begins after a cordon and ends before the uncordon. A request that names no node is not
 * deleted. Resolves with the number of requests that name a node but were not deleted, because the node is still
 * cordoned or because the deletion failed.
 */
export async function withdrawLeftRequests(parts: Parts): Promise<number> {
  const { client, abort } = parts;
  const failures: unknown[] = [];
  let stay = 0;
  for (const [node, requests] of Map.groupBy(await list(parts), drainedNode)) {
    if (node === undefined) continue;
    try {
      const found = await ifFound(client.get(nodes, node, { abort }));
      if (found?.spec?.unschedulable === true) stay += requests.length;
      else failures.push(...(await withdrawAll(requests, node, parts)));
    } catch (error) {
      abort.throwIfAborted();
      failures.push(error);
    }
  }
  if (failures.length > 0) parts.onFailures(failures);
  return stay + failures.length;
}

/**
 * Deletes all requests for the pods of this node, whichever process created them. The caller must end all drains of the
 * node first.
 */
export async function withdrawRequestsFor(node: string, parts: Parts): Promise<void> {
  const requests = (await list(parts)).filter((request) => drainedNode(request) === node);
  const failures = await withdrawAll(requests, node, parts);
  if (failures.length > 0) parts.onFailures(failures);
}

/**
 * Deletes the requests, and resolves with the errors of the requests that could not be deleted. If one deletion fails,
 * the other requests are deleted nevertheless.
 */
async function withdrawAll(
  requests: readonly EvictionRequest[],
  node: string,
  parts: Parts,
): Promise<unknown[]> {
  const failures: unknown[] = [];
  for (const request of requests) {
    try {
      await withdraw(request, node, parts);
    } catch (error) {
      parts.abort.throwIfAborted();
      failures.push(error);
    }
  }
  return failures;
}

async function list({ client, abort }: Parts): Promise<readonly EvictionRequest[]> {
  return (await client.listAll(evictionRequests, { labelSelector: REQUESTER, abort })).items;
}

async function withdraw(
  request: EvictionRequest,
  node: string,
  { client, log, abort }: Parts,
): Promise<void> {
  const { name, namespace, uid } = request.metadata;
  await ifFound(client.delete(evictionRequests, name, { namespace, uid, abort }));
  log.info('withdrew a leftover EvictionRequest', { request: keyOf(request), node });
}
