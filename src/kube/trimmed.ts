/**
 * Makes objects smaller page by page while a list is read, because thousands of complete objects
 * may not fit into memory.
 */
import { isRecord } from '../util/json.ts';
import type { KubeClient, ListOptions } from './client.ts';
import { type KubeList, type KubeObject, type Node, nodes } from './resources.ts';

/**
 * Returns the object without its managed fields. A write of this object does not change the managed fields on the
 * server.
 */
export function withoutManagedFields<T extends KubeObject>(object: T): T {
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** The fields of a Node's status that are large and that Refit never reads: the resources of the host, and its images and volumes. */
const UNREAD = [
  'images',
  'volumesInUse',
  'volumesAttached',
  'capacity',
  'allocatable',
  'daemonEndpoints',
] as const;
/** Conditions of the kubelet that Refit never reads. With 15,000 Nodes they would take many MiB. */
const UNREAD_CONDITIONS: ReadonlySet<unknown> = new Set([
  'MemoryPressure',
  'DiskPressure',
  'PIDPressure',
]);

/**
 * Returns the Node without the parts of its status that Refit never reads. These parts are most of its size. This Node
 * can be written to the server, because such a write does not change the status.
 */
export function trimNode<T extends KubeObject & { readonly status?: unknown }>(node: T): T {
  if (!isRecord(node.status)) return node;
  const status = { ...node.status };
  for (const key of UNREAD) delete status[key];
  const { conditions } = status;
  if (Array.isArray(conditions))
    status['conditions'] = conditions.filter(
      (each: unknown) => !(isRecord(each) && UNREAD_CONDITIONS.has(each['type'])),
    );
  return { ...node, status: { ...status } };
}

/**
 * Lists all Nodes without managed fields. Each Node is in the form that `trimNode` returns. Labels stay, because plans
 * and policies may select Nodes by any label, and because a Node may be written to the server.
 */
export async function listNodes(
  client: Pick<KubeClient, 'listAll'>,
  options: ListOptions = {},
): Promise<KubeList<Node>> {
  const transform = (node: Node): Node => trimNode(withoutManagedFields(node));
  return await client.listAll(nodes, { ...options, transform });
}
