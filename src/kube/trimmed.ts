/**
 * Makes objects smaller page by page while a list is read, because thousands of complete objects
 * may not fit into memory.
 */
import { isRecord } from '../util/json.ts';
import type { KubeClient, ListOptions } from './client.ts';
import { type KubeList, type KubeObject, type Node, nodes } from './resources.ts';

/**
 * Returns the object without its managed fields. A write without them leaves those on the server as
 * they are.
 */
export function withoutManagedFields<T extends KubeObject>(object: T): T {
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/**
 * Returns the Node without its lists of images and volumes, which are most of its size. It can be
 * written back, because such a write does not change the status.
 */
export function trimNode<T extends KubeObject & { readonly status?: unknown }>(node: T): T {
  const { status } = node;
  if (!isRecord(status)) return node;
  const { images: _images, volumesInUse: _inUse, volumesAttached: _attached, ...rest } = status;
  return { ...node, status: rest };
}

/**
 * Lists all Nodes without managed fields, images and volumes. Labels stay, because plans and
 * policies may select by any of them and a Node may be written back.
 */
export async function listNodes(
  client: Pick<KubeClient, 'listAll'>,
  options: ListOptions = {},
): Promise<KubeList<Node>> {
  const transform = (node: Node): Node => trimNode(withoutManagedFields(node));
  return await client.listAll(nodes, { ...options, transform });
}
