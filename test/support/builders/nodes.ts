/** The objects of targets, for tests: a Ready Node, and a ControlNode with an address. Both are linux-amd64. */
import type { Node, ObjectMeta } from '../../../src/kube/resources.ts';
import type { ControlNode } from '../../../src/signal/names.ts';

const PLATFORM = { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64' };

export function buildNode(
  name: string,
  metadata: Partial<ObjectMeta> = {},
  ready: 'True' | 'False' = 'True',
): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: metadataOf(name, metadata),
    status: { conditions: [{ type: 'Ready', status: ready }] },
  };
}

/** Returns the Node whose kubelet reports the version. */
export function withKubelet(node: Node, kubeletVersion: string): Node {
  const { nodeInfo } = node.status ?? {};
  return { ...node, status: { ...node.status, nodeInfo: { ...nodeInfo, kubeletVersion } } };
}

export function buildControlNode(name: string, metadata: Partial<ObjectMeta> = {}): ControlNode {
  return {
    apiVersion: 'autopilot.k0sproject.io/v1beta2',
    kind: 'ControlNode',
    metadata: metadataOf(name, metadata),
    status: {
      addresses: [{ type: 'InternalIP', address: `10.0.0.${name.replaceAll(/\D/g, '') || 1}` }],
    },
  };
}

function metadataOf(name: string, { labels, ...more }: Partial<ObjectMeta>): ObjectMeta {
  return {
    name,
    uid: `${name}-uid`,
    resourceVersion: '1',
    labels: { ...PLATFORM, ...labels },
    ...more,
  };
}
