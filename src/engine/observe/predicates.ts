/** Informer predicates and transforms: which changes can change a decision, and what the cache keeps of a Node. */
import {
  type KubeObject,
  type Node,
  readyCondition,
  withoutAnnotations,
} from '../../kube/resources.ts';
import { HEARTBEAT_ANNOTATION } from '../../signal/names.ts';
import { isRecord, sameJson } from '../../util/json.ts';

export function isRelevant(before: KubeObject, after: KubeObject): boolean {
  return before.metadata.uid !== after.metadata.uid || !sameJson(decisive(before), decisive(after));
}

function decisive(object: KubeObject): unknown {
  const { labels, annotations } = withoutAnnotations(object, HEARTBEAT_ANNOTATION).metadata;
  const { spec, status } = object as Node;
  const { addresses, nodeInfo } = status ?? {};
  const ready = readyCondition(object)?.status;
  const { unschedulable, taints } = spec ?? {};
  return {
    labels,
    annotations,
    addresses,
    ready,
    unschedulable,
    taints,
    version: nodeInfo?.kubeletVersion,
  };
}

/** Without image and volume lists, most of a Node's size. It can be written back: such a write leaves the status alone. */
export function trimNode(node: KubeObject & { readonly status?: unknown }): KubeObject {
  const { status } = node;
  if (!isRecord(status)) return node;
  const { images: _images, volumesInUse: _inUse, volumesAttached: _attached, ...rest } = status;
  const smaller: typeof node = { ...node, status: rest };
  return smaller;
}
