/** Builds Nodes without machines. kwok simulates their kubelets. */
import type { Node } from '../../src/kube/resources.ts';
import { KUBERNETES_VERSION } from './components.ts';

/** A List of `count` nodes named w1, w2, …, as JSON for kubectl. */
export function simulatedNodes(count: number): string {
  const items = Array.from({ length: count }, (_, index) => simulatedNode(`w${index + 1}`));
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
}

export function simulatedNode(name: string): Node {
  const platform = { operatingSystem: 'linux', architecture: 'amd64' };
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      annotations: { 'kwok.x-k8s.io/node': 'fake' },
      labels: {
        'kubernetes.io/hostname': name,
        'kubernetes.io/os': platform.operatingSystem,
        'kubernetes.io/arch': platform.architecture,
      },
    },
    status: { nodeInfo: { kubeletVersion: KUBERNETES_VERSION, ...platform } },
  };
}
