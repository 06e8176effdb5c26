/** The version that the object of a node contains, as the node's kubelet or k0s writes it. */

import type { KubeObject, Node } from '../../src/kube/resources.ts';
import type { ControlNode } from '../../src/signal/names.ts';
import { kubernetesPartOf } from '../../src/versions/release-parts.ts';

export function tellingVersion<T extends KubeObject>(object: T, version: string): T {
  const { status } = object as KubeObject & { readonly status?: object };
  const told =
    object.kind === 'Node'
      ? { nodeInfo: { kubeletVersion: kubernetesPartOf(version) } }
      : { k0sVersion: version };
  return { ...object, status: { ...status, ...told } };
}

/** Returns true if the object shows what the process of this version writes. */
export function showsVersion(object: KubeObject, version: string): boolean {
  return object.kind === 'Node'
    ? (object as Node).status?.nodeInfo?.kubeletVersion === kubernetesPartOf(version)
    : (object as ControlNode).status?.k0sVersion === version;
}
