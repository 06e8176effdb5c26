/** Finds the API servers of clusters whose control plane hosts are Nodes. */
import type { Endpoint, World } from '../../engine/contract/world.ts';
import { hasControlPlaneLabel } from '../../kube/control-plane-label.ts';
import { type Node, nodes } from '../../kube/resources.ts';

export { CONTROL_PLANE } from '../../kube/control-plane-label.ts';

export function isController({ metadata }: Node): boolean {
  return hasControlPlaneLabel(metadata.labels);
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
