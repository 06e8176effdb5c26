/** Owns where the API servers of a cluster are that has Nodes for its control plane. */
import type { Endpoint, World } from '../engine/dialect.ts';
import { nodes } from '../kube/resources.ts';
import type { Node } from '../kube/types.ts';

/** Set by kubeadm and by every installer that follows it. */
export const CONTROL_PLANE = 'node-role.kubernetes.io/control-plane';

export function isController({ metadata }: Node): boolean {
  return metadata.labels?.[CONTROL_PLANE] !== undefined;
}

/** Each at its Node's own address. */
export function endpointsOf(world: World): Endpoint[] {
  return world
    .list(nodes)
    .filter(isController)
    .map(({ metadata: { name }, status }) => ({
      name,
      host: status?.addresses?.find(({ type }) => type === 'InternalIP')?.address,
    }));
}
