/** Owns which changes of a target's object can change a decision: heartbeats and the like cannot. */
import type { KubeObject, Node } from '../../kube/types.ts';
import { sameJson } from '../../util/json.ts';

/** True where a decision that was taken on `before` must be taken again on `after`. */
export function isRelevant(before: KubeObject, after: KubeObject): boolean {
  return before.metadata.uid !== after.metadata.uid || !sameJson(decisive(before), decisive(after));
}

function decisive(object: KubeObject): unknown {
  const { labels, annotations } = object.metadata;
  const { spec, status } = object as Node;
  const { conditions, addresses, nodeInfo } = status ?? {};
  const ready = conditions?.find(({ type }) => type === 'Ready')?.status;
  const { unschedulable, taints } = spec ?? {};
  return { labels, annotations, addresses, ready, unschedulable, taints, version: nodeInfo?.kubeletVersion };
}
