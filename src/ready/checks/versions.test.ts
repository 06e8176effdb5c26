/** Tests the check of versions, and of what Nodes say about their machines. */
import { expect, test } from 'vitest';
import { readyContext, readyNode } from '../../../test/support/ready/world.ts';
import { checkVersions } from './versions.ts';

const at = (version: string): Readonly<Record<string, string>> => ({
  '/version': JSON.stringify({ gitVersion: version }),
});
const kubelet = (kubeletVersion: string, nodeInfo: object = {}): object =>
  readyNode('w1', { nodeInfo: { kubeletVersion, ...nodeInfo } });
const ask = async (to: string, objects: readonly object[], ...servers: string[]) =>
  await checkVersions(readyContext({ to, objects, servers: servers.map(at) }));

test('the next minor version is ok', async () => {
  expect(await ask('v1.37.2', [kubelet('v1.36.3')], 'v1.36.3')).toEqual([
    { state: 'ok', message: 'v1.37.2 may follow v1.36.3' },
  ]);
});

test.each<[string, string, readonly object[], readonly string[], string, object]>([
  [
    'an API server that would skip a minor version',
    'v1.37.0',
    [],
    ['v1.35.4'],
    'blocker',
    {
      object: 'API server 10.0.0.1',
      message: 'it would go from v1.35.4 past 1.36 to v1.37.0',
      cure: 'upgrade to 1.36 first',
    },
  ],
  [
    'an API server that would go down',
    'v1.35.0',
    [],
    ['v1.36.0'],
    'blocker',
    { object: 'API server 10.0.0.1', message: 'it would go from v1.36.0 down to v1.35.0' },
  ],
  [
    'API servers of different minor versions',
    'v1.37.0',
    [],
    ['v1.36.0', 'v1.37.0'],
    'blocker',
    {
      message:
        'the API servers have different minor versions: 10.0.0.1 has v1.36.0, 10.0.0.2 has v1.37.0',
    },
  ],
  [
    'a version of an API server that cannot be read',
    'v1.37.0',
    [],
    ['x'],
    'unknown',
    { object: 'API server 10.0.0.1' },
  ],
  [
    'a kubelet that would be too old',
    'v1.37.0',
    [kubelet('v1.33.1')],
    ['v1.36.3'],
    'blocker',
    {
      object: 'Node w1',
      message:
        'its kubelet v1.33.1 may be at most 3 minor versions older than an API server of v1.37.0',
    },
  ],
  [
    'a kubelet of k0s that would be too old',
    'v1.37.0+k0s.0',
    [kubelet('v1.35.1+k0s')],
    ['v1.36.3+k0s'],
    'blocker',
    {
      message:
        'its kubelet v1.35.1+k0s may be at most 1 minor version older than an API server of v1.37.0+k0s.0',
    },
  ],
  [
    'a kubelet that is newer than the target',
    'v1.36.9',
    [kubelet('v1.37.0')],
    ['v1.36.3'],
    'blocker',
    {
      message:
        'its kubelet v1.37.0 is newer than v1.36.9: a kubelet must not be newer than an API server',
    },
  ],
  [
    'a kernel that kubeadm does not support',
    'v1.37.0',
    [kubelet('v1.36.3', { kernelVersion: '5.14.0-70.el9' })],
    ['v1.36.3'],
    'warning',
    { message: 'Linux 5.14 is not among the kernels that kubeadm 1.37 supports' },
  ],
  [
    'a containerd that will not be supported much longer',
    'v1.37.0',
    [kubelet('v1.36.3', { containerRuntimeVersion: 'containerd://1.7.27' })],
    ['v1.36.3'],
    'warning',
    { message: 'containerd 1.7.27: 1.37 is the last with containerd 1.x' },
  ],
  [
    'a pre-release',
    'v1.37.0-rc.1',
    [],
    ['v1.36.3'],
    'warning',
    { message: 'v1.37.0-rc.1 is a pre-release' },
  ],
  [
    'a version that this Refit does not know',
    'v1.38.0',
    [],
    ['v1.37.0'],
    'unknown',
    {
      message:
        'this Refit does not know the rules of v1.38.0; it knows those of versions until 1.37',
    },
  ],
])('%s is found', async (_title, to, objects, servers, state, expected) => {
  expect(await ask(to, objects, ...servers)).toContainEqual(
    expect.objectContaining({ state, ...expected }),
  );
});

test('the containerd that a product brings with each version is not judged', async () => {
  const own = kubelet('v1.36.3+k3s1', { containerRuntimeVersion: 'containerd://1.7.27-k3s1' });
  expect(await ask('v1.37.0+k3s1', [own], 'v1.36.3+k3s1')).toEqual([
    expect.objectContaining({ state: 'ok' }),
  ]);
});

test('a node that is not Ready is a warning', async () => {
  const node = readyNode('w1', { status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } });
  expect(await ask('v1.37.0', [node], 'v1.36.3')).toEqual([
    expect.objectContaining({ state: 'warning', object: 'Node w1', message: 'it is not Ready' }),
  ]);
});

const member = (image: string): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'etcd-cp1', namespace: 'kube-system', labels: { component: 'etcd' } },
  spec: { containers: [{ name: 'etcd', image }] },
});

test.each([
  ['registry.example.com/etcd:3.5.19-0', 'blocker'],
  ['registry.example.com/etcd:3.5.21-0', 'warning'],
  ['registry.example.com/etcd:3.5.26-0', 'ok'],
])(
  'a member of etcd with the image %s is %s before kubeadm goes to etcd 3.6',
  async (image, state) => {
    const found = await ask('v1.34.0', [member(image)], 'v1.33.1');
    expect(found.map((each) => each.state)).toEqual([state]);
  },
);

test('nodes with the same problem are one finding', async () => {
  const nodes = ['w1', 'w2'].map((name) =>
    readyNode(name, { nodeInfo: { kubeletVersion: 'v1.32.0' } }),
  );
  expect(await ask('v1.37.0', nodes, 'v1.36.3')).toEqual([
    expect.objectContaining({ state: 'blocker', object: 'Node w1, Node w2' }),
  ]);
});
