/** The version that the object of a node contains, as the node's kubelet or k0s writes it. */
import type { KubeObject, Node } from '../../src/kube/resources.ts';
import type { ControlNode } from '../../src/signal/names.ts';

export function tellingVersion<T extends KubeObject>(object: T, version: string): T {
  const { status } = object as KubeObject & { readonly status?: object };
  const told =
    object.kind === 'Node' ? { nodeInfo: { kubeletVersion: version } } : { k0sVersion: version };
  return { ...object, status: { ...status, ...told } };
}

export function toldVersion(object: KubeObject): string | undefined {
  return object.kind === 'Node'
    ? (object as Node).status?.nodeInfo?.kubeletVersion
    : (object as ControlNode).status?.k0sVersion;
}
