/** Predicates for informers. They decide whether a change of an object can affect a decision. */
import {
  type KubeObject,
  kubeletVersionOf,
  type Node,
  readyCondition,
  withoutAnnotations,
} from '../../kube/resources.ts';
import { HEARTBEAT_ANNOTATION } from '../../signal/names.ts';
import { sameJson } from '../../util/json.ts';

/** Returns false for a change that affects no decision, such as a heartbeat or a new list of images. */
export function isRelevant(before: KubeObject, after: KubeObject): boolean {
  return before.metadata.uid !== after.metadata.uid || !sameJson(decisive(before), decisive(after));
}

function decisive(object: KubeObject): unknown {
  const { labels, annotations } = withoutAnnotations(object, HEARTBEAT_ANNOTATION).metadata;
  const { spec, status } = object as Node;
  const { addresses } = status ?? {};
  const ready = readyCondition(object)?.status;
  const { unschedulable, taints } = spec ?? {};
  return {
    labels,
    annotations,
    addresses,
    ready,
    unschedulable,
    taints,
    version: kubeletVersionOf(object),
  };
}
