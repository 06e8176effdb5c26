/** Finds the API servers of clusters whose control plane hosts are Nodes. */
import type { Endpoint, World } from '../../engine/contract/world.ts';
import { type Node, nodes } from '../../kube/resources.ts';

/** kubeadm and similar installers set this label. */
export const CONTROL_PLANE = 'node-role.kubernetes.io/control-plane';

export function isController({ metadata }: Node): boolean {
  return metadata.labels?.[CONTROL_PLANE] !== undefined;
}

export function endpointsOf(world: World): Endpoint[] {
  return world.list(nodes).filter(isController).map(endpointOf);
}

export function endpointOf({
  metadata: { name },
  status,
}: Pick<Node, 'metadata' | 'status'>): Endpoint {
  return { name, host: status?.addresses?.find(({ type }) => type === 'InternalIP')?.address };
}
