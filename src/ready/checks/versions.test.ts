/** Tests the check of versions, and of what Nodes say about their machines. */
import { expect, test } from 'vitest';
import { readyContext, readyNode } from '../../../test/support/ready/world.ts';
import { k0sReadiness } from '../../dialects/autopilot/plan/readiness.ts';
import { AGENT_ANNOTATION, HEARTBEAT_ANNOTATION } from '../../signal/names.ts';
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

test.each([
  ['v1.36.3', 'v1.36.3', 'v1.36.3', 'each API server and each kubelet runs v1.36.3 already'],
  [
    'v1.36.3+k0s.2',
    'v1.36.3+k0s',
    'v1.36.3+k0s',
    'each API server and each kubelet reports v1.36.3+k0s, so v1.36.3+k0s.2 may run already',
  ],
  ['v1.36.3', 'v1.36.3', 'v1.36.2', 'v1.36.3 may follow v1.36.3'],
  ['v1.36.3', 'v1.36.2', 'v1.36.3', 'v1.36.3 may follow v1.36.2'],
])(
  'a target of %s for an API server with %s and a kubelet with %s is ok: %s',
  async (to, server, own, message) => {
    expect(await ask(to, [kubelet(own)], server)).toEqual([{ state: 'ok', message }]);
  },
);

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
    {
      object: 'API server 10.0.0.1',
      message: 'it would go from v1.36.0 down to v1.35.0',
      cure: 'choose the version that the cluster has, or a later one; `refit rollback` undoes an upgrade',
    },
  ],
  [
    'API servers of different minor versions',
    'v1.37.0',
    [],
    ['v1.36.0', 'v1.37.0'],
    'blocker',
    {
      object: 'API server 10.0.0.1, 10.0.0.2',
      message: 'they have different minor versions: 10.0.0.1 has v1.36.0, 10.0.0.2 has v1.37.0',
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
      message: 'this Refit does not know the rules of v1.38.0; it knows those of 1.33 to 1.37',
      cure: 'use a newer Refit, and read the changelog of the new version',
    },
  ],
  [
    'a version that is older than all known ones',
    'v1.20.0',
    [],
    ['v1.19.0'],
    'unknown',
    { cure: 'read the changelog of that version: Kubernetes maintains 1.35 and later' },
  ],
  [
    'an API server that would go to another major version',
    'v2.0.0',
    [],
    ['v1.36.0'],
    'blocker',
    {
      message: 'it would go from v1.36.0 past the rest of its major version to v2.0.0',
      cure: 'upgrade to the last minor version of Kubernetes 1 first',
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
    readyNode(name, { nodeInfo: { kubeletVersion: 'v1.38.0' } }),
  );
  expect(await ask('v1.37.0', nodes, 'v1.36.3')).toEqual([
    expect.objectContaining({ state: 'blocker', object: 'Node w1, Node w2' }),
  ]);
});

test('an API server whose version cannot be read has no other minor version than the others', async () => {
  const found = await ask('v1.37.0', [], 'v1.36.0', 'x');
  expect(found.map(({ state }) => state)).toEqual(['unknown']);
});

test.each([
  'registry.k8s.io/etcd@sha256:1234',
  'registry.example.com:5000/etcd@sha256:1234',
  'registry.example.com:5000/etcd',
  'registry.example.com/etcd:latest',
])('a member of etcd with the image %s is unknown, because it names no version', async (image) => {
  expect(await ask('v1.34.0', [member(image)], 'v1.33.1')).toEqual([
    {
      state: 'unknown',
      object: 'Pod kube-system/etcd-cp1',
      message: `which version of etcd it runs: its image ${image} does not say it`,
      cure: 'ask each member with `etcdctl endpoint status`',
    },
  ]);
});

test('the version of a member of etcd is read from the tag before a digest, and not from a port', async () => {
  const image = 'registry.example.com:5000/etcd:3.5.26-0@sha256:1234';
  expect(await ask('v1.34.0', [member(image)], 'v1.33.1')).toEqual([
    expect.objectContaining({ state: 'ok' }),
  ]);
});

const podWith = (...containers: object[]): object => ({
  ...member(''),
  spec: { containers },
});

test('only the container etcd of its static pod is a member', async () => {
  const sidecar = { name: 'logs', image: 'busybox:latest' };
  const etcd = { name: 'etcd', image: 'registry.k8s.io/etcd:3.5.26-0' };
  expect(await ask('v1.34.0', [podWith(sidecar, etcd)], 'v1.33.1')).toEqual([
    expect.objectContaining({ state: 'ok' }),
  ]);
  expect(await ask('v1.34.0', [podWith(sidecar)], 'v1.33.1')).toEqual([
    expect.objectContaining({ state: 'unknown', object: 'Pod kube-system/etcd-cp1' }),
  ]);
});

test('a blocker of the rules of kubeadm names no field of a manifest', async () => {
  const old = kubelet('v1.37.0', { containerRuntimeVersion: 'containerd://1.7.27' });
  const found = [
    ...(await ask('v1.34.0', [member('registry.k8s.io/etcd:3.5.19-0')], 'v1.33.1')),
    ...(await ask('v1.38.0', [old], 'v1.37.0')),
  ].filter(({ state }) => state === 'blocker');
  expect(found).toHaveLength(2);
  expect(JSON.stringify(found)).not.toMatch(/manifest|ignorePreflightErrors|no setting/);
});

test.each([
  ['K3s', 'v1.36.3+k3s1', 'linux'],
  ['RKE2', 'v1.36.3+rke2r1', 'linux'],
  ['k0s', 'v1.36.3+k0s', 'linux'],
  ['EKS', 'v1.36.3-eks-113cf36', 'linux'],
  ['Windows', 'v1.36.3', 'windows'],
])(
  'a kernel that kubeadm does not support is no problem of a node of %s',
  async (_title, version, operatingSystem) => {
    const node = kubelet(version, { kernelVersion: '5.14.0-70.el9', operatingSystem });
    expect(await ask('v1.37.0', [node], version)).toEqual([
      expect.objectContaining({ state: 'ok' }),
    ]);
  },
);

test.each([
  ['v1.36.3+k3s1', 'v1.37.0+k0s.0', 'is of K3s, and v1.37.0+k0s.0 of k0s'],
  ['v1.36.3+k3s1', 'v1.37.0+rke2r1', 'is of K3s, and v1.37.0+rke2r1 of RKE2'],
  ['v1.36.3+k0s', 'v1.37.0+k3s1', 'is of k0s, and v1.37.0+k3s1 of K3s'],
  ['v1.36.3+rke2r1', 'v1.37.0+vendor.1', 'is of RKE2, and v1.37.0+vendor.1 is not'],
])('nodes of %s cannot go to %s, which is of another product', async (from, to, message) => {
  const found = await ask(to, [kubelet(from)], from);
  expect(found).toEqual([
    {
      state: 'blocker',
      object: 'API server 10.0.0.1',
      message: `its version ${from} ${message}`,
      cure: 'choose a version of the product that runs there',
    },
    {
      state: 'blocker',
      object: 'Node w1',
      message: `the version of its kubelet ${from} ${message}`,
      cure: 'choose a version of the product that runs there',
    },
  ]);
});

test('nodes whose version names no product are a warning if the target names one', async () => {
  expect(await ask('v1.37.0+k0s.0', [kubelet('v1.36.3')], 'v1.36.3')).toEqual([
    expect.objectContaining({
      state: 'warning',
      object: 'Node w1',
      message: 'the version of its kubelet v1.36.3 is not of k0s, as v1.37.0+k0s.0 is',
    }),
  ]);
});

test.each(['v1.36.3+k3s1', 'v1.36.3+rke2r1', 'v1.36.3+k0s', 'v1.36.3'])(
  'a target without a build is one of every product, also of %s',
  async (from) => {
    for (const to of ['v1.36.3', 'v1.37.0'])
      expect(await ask(to, [kubelet(from)], from)).toEqual([
        expect.objectContaining({ state: 'ok' }),
      ]);
  },
);

const CGROUPS = {
  state: 'unknown',
  message:
    'a kubelet of 1.35 or later does not start on cgroup v1, and nobody says which version of cgroups its host has',
};

test.each(['v1.34.3', 'v1.34.3+k3s1', 'v1.34.3+rke2r1', 'v1.34.3+k0s'])(
  'hosts of %s whose version of cgroups nobody says are one question before 1.35',
  async (kubeletVersion) => {
    const nodes = ['w1', 'w2'].map((name) => readyNode(name, { nodeInfo: { kubeletVersion } }));
    expect(await ask('v1.35.0', nodes, kubeletVersion)).toEqual([
      expect.objectContaining({ ...CGROUPS, object: 'Node w1, Node w2' }),
    ]);
  },
);

test.each<[string, string, object]>([
  ['a kubelet of 1.35, which runs', 'v1.36.0', { kubeletVersion: 'v1.35.1' }],
  ['a target before 1.35', 'v1.34.3', { kubeletVersion: 'v1.34.0' }],
  ['Windows', 'v1.35.0', { kubeletVersion: 'v1.34.3', operatingSystem: 'windows' }],
])('nobody is asked about cgroups: %s', async (_title, to, nodeInfo) => {
  const from = (nodeInfo as { kubeletVersion: string }).kubeletVersion;
  expect(await ask(to, [readyNode('w1', { nodeInfo })], from)).toEqual([
    expect.objectContaining({ state: 'ok' }),
  ]);
});

const withAgent = (name: string, presence: object): object => {
  const node = readyNode(name, { nodeInfo: { kubeletVersion: 'v1.34.3+k0s' } }) as {
    metadata: object;
  };
  const value = JSON.stringify({ version: '0.3.0', since: '2026-11-30T12:00:00Z', ...presence });
  return { ...node, metadata: { ...node.metadata, annotations: { [AGENT_ANNOTATION]: value } } };
};

/** Returns a Node whose agent sent its last heartbeat an hour before its kubelet. */
const withSilentAgent = (name: string): object => {
  const node = withAgent(name, {}) as { metadata: { annotations: object }; status: object };
  const heartbeat = JSON.stringify({ at: '2026-11-30T12:00:00Z', since: '2026-11-30T12:00:00Z' });
  const conditions = [{ type: 'Ready', status: 'True', lastHeartbeatTime: '2026-11-30T13:00:00Z' }];
  return {
    ...node,
    metadata: {
      ...node.metadata,
      annotations: { ...node.metadata.annotations, [HEARTBEAT_ANNOTATION]: heartbeat },
    },
    status: { ...node.status, conditions },
  };
};

test('hosts whose agent looks at cgroups are not asked about, and those of a silent agent or one for kubeadm are', async () => {
  const controller = {
    apiVersion: 'autopilot.k0sproject.io/v1beta2',
    kind: 'ControlNode',
    metadata: (withAgent('c1', {}) as { metadata: object }).metadata,
  };
  const objects = [
    withAgent('w1', {}),
    withAgent('w2', { aside: true }),
    withAgent('w3', { procedure: 'kubeadm' }),
    withSilentAgent('w4'),
    readyNode('c1', { nodeInfo: { kubeletVersion: 'v1.34.3+k0s' } }),
    controller,
  ];
  const servers = [at('v1.34.3+k0s')];
  const dialects = [k0sReadiness];
  const context = readyContext({ to: 'v1.35.1+k0s.0', objects, servers, dialects });
  expect(await checkVersions(context)).toEqual([
    expect.objectContaining({ ...CGROUPS, object: 'Node w3, Node w4' }),
  ]);
});
