/** Tests which Nodes have no kubelet on a host. */
import { expect, test } from 'vitest';
import type { Node } from './resources.ts';
import { virtualBy } from './virtual-nodes.ts';

function nodeOf(version: string | undefined, more: Partial<Node['metadata']> = {}): Node {
  const nodeInfo = version === undefined ? {} : { kubeletVersion: version };
  return { metadata: { name: 'n1', ...more }, status: { nodeInfo } };
}

test.each([
  ['kwok-v0.7.0', 'kubelet version kwok-v0.7.0'],
  ['v1.19.10-vk-azure', 'kubelet version v1.19.10-vk-azure'],
  // If nothing marks the Node as virtual, it may be a host whose kubelet was built without a version.
  ['v0.0.0-master+$Format:%H$', undefined],
  ['fake', undefined],
  ['1.33', undefined],
  ['v1.36.3', undefined],
  ['v1.36.3+k0s.0', undefined],
  ['v1.36.3-rc.1+k3s1', undefined],
  ['v1.33.1-eks-1234567', undefined],
  ['', undefined],
  [undefined, undefined],
])('a Node of version %s', (version, found) => {
  expect(virtualBy(nodeOf(version))).toBe(found);
});

test.each<[string, Node, string | undefined]>([
  [
    'the label of virtual-kubelet',
    nodeOf('v1.36.3', { labels: { type: 'virtual-kubelet' } }),
    'label type=virtual-kubelet',
  ],
  [
    'the taint of its provider',
    {
      ...nodeOf('v1.36.3', { labels: { 'kubernetes.io/role': 'agent' } }),
      spec: {
        taints: [{ key: 'virtual-kubelet.io/provider', value: 'azure', effect: 'NoSchedule' }],
      },
    },
    'taint virtual-kubelet.io/provider',
  ],
  [
    'the annotation of KWOK',
    nodeOf('v1.36.3', { annotations: { 'kwok.x-k8s.io/node': 'fake' } }),
    'annotation kwok.x-k8s.io/node',
  ],
  [
    'a role that hosts have, too',
    nodeOf('v1.36.3', { labels: { 'kubernetes.io/role': 'agent', type: 'gpu' } }),
    undefined,
  ],
])('%s', (_name, node, found) => {
  expect(virtualBy(node)).toBe(found);
});

test('a Node is read once, however many decisions ask', () => {
  let reads = 0;
  const counting: Node = {
    metadata: {
      name: 'n1',
      get labels() {
        reads++;
        return {};
      },
    },
  };
  expect([virtualBy(counting), virtualBy(counting), reads]).toEqual([undefined, undefined, 1]);
});
