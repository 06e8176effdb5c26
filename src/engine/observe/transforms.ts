/** Owns what is kept in memory of a Node: there may be thousands, and most of each is a list of images. */
import type { KubeObject } from '../../kube/types.ts';
import { isRecord } from '../../util/json.ts';

/**
 * The Node without what nobody here asks for. All of that stands in its status, which no write of a Node's main part
 * changes, whatever is sent: so it can be written back as it is kept.
 */
export function trimNode(node: KubeObject & { readonly status?: unknown }): KubeObject {
  const { status } = node;
  if (!isRecord(status)) return node;
  const { images: _images, volumesInUse: _inUse, volumesAttached: _attached, ...kept } = status;
  const smaller: typeof node = { ...node, status: kept };
  return smaller;
}
