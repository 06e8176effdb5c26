/** Makes objects smaller as they are read, page by page: thousands of complete ones may not fit into memory. */
import { isRecord } from '../util/json.ts';
import type { KubeClient, ListOptions } from './client.ts';
import { type KubeList, type KubeObject, type Node, nodes } from './resources.ts';

/** A write without the managed fields leaves those of the server as they are. */
export function withoutManagedFields<T extends KubeObject>(object: T): T {
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** Without image and volume lists, most of a Node's size. It can be written back: such a write leaves the status alone. */
export function trimNode<T extends KubeObject & { readonly status?: unknown }>(node: T): T {
  const { status } = node;
  if (!isRecord(status)) return node;
  const { images: _images, volumesInUse: _inUse, volumesAttached: _attached, ...rest } = status;
  return { ...node, status: rest };
}

/** All Nodes, trimmed, also of what tells who has cordoned them. Labels stay: any plan or policy may select by any of them, and a Node may be written back. */
export async function listNodes(
  client: Pick<KubeClient, 'listAll'>,
  options: ListOptions = {},
): Promise<KubeList<Node>> {
  const transform = (node: Node): Node => trimNode(withoutManagedFields(node));
  return await client.listAll(nodes, { ...options, transform });
}
