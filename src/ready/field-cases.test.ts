/** Tests what `refit ready` says before upgrades that broke for others: flags, feature gates, versions, drains and room. */
import { expect, test } from 'vitest';
import {
  namespaceObject,
  placedPod,
  readyContext,
  readyNode,
} from '../../test/support/ready/world.ts';
import { k0sReadiness } from '../dialects/autopilot/plan/readiness.ts';
import { clusterApiReadiness } from '../dialects/capi/plan/readiness.ts';
import { rancherReadiness } from '../dialects/cattle/plan/readiness.ts';
import { kubeadmReadiness } from '../dialects/kubeadm/plan/readiness.ts';
import { checkDrains } from './checks/drains.ts';
import { checkGround } from './checks/ground.ts';
import { checkRoom } from './checks/room.ts';
import { checkSettings } from './checks/settings.ts';
import { checkVersions } from './checks/versions.ts';
import type { DialectReadiness } from './context.ts';

const settings = async (dialect: DialectReadiness, to: string, ...objects: object[]) =>
  await checkSettings(readyContext({ objects, to, dialects: [dialect] }));
const about = (part: string): string => expect.stringContaining(part) as string;

test('a flag of kubelets that goes is found in a template of Cluster API, and no flag with the same beginning', async () => {
  const kubeletExtraArgs = [
    { name: 'containerd', value: '/run/containerd/containerd.sock' },
    { name: 'container-runtime-endpoint', value: 'unix:///run/containerd/containerd.sock' },
    { name: 'container-log-max-size', value: '10Mi' },
  ];
  const template = {
    apiVersion: 'bootstrap.cluster.x-k8s.io/v1beta2',
    kind: 'KubeadmConfigTemplate',
    metadata: { name: 'workers', namespace: 'prod' },
    spec: {
      template: { spec: { joinConfiguration: { nodeRegistration: { kubeletExtraArgs } } } },
    },
  };
  const workers = {
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'MachineDeployment',
    metadata: { name: 'workers', namespace: 'prod' },
    spec: {
      clusterName: 'blue',
      template: {
        spec: { bootstrap: { configRef: { kind: 'KubeadmConfigTemplate', name: 'workers' } } },
      },
    },
  };
  const node = readyNode('w1') as { metadata: object };
  const annotations = {
    'cluster.x-k8s.io/cluster-name': 'blue',
    'cluster.x-k8s.io/cluster-namespace': 'prod',
  };
  const worker = { ...node, metadata: { ...node.metadata, annotations } };
  expect(await settings(clusterApiReadiness, 'v1.37.0', worker, workers, template)).toEqual([
    {
      state: 'blocker',
      object: 'KubeadmConfigTemplate prod/workers',
      message: about('flag --containerd in spec.template.spec.joinConfiguration'),
      cure: 'remove it before the upgrade',
    },
  ]);
});

const gateOfK0s = (gate: object): object => ({
  apiVersion: 'k0s.k0sproject.io/v1beta1',
  kind: 'ClusterConfig',
  metadata: { name: 'k0s', namespace: 'kube-system' },
  spec: { featureGates: [gate] },
});

test('a feature gate of k0s is judged only for the components that it names', async () => {
  const components = ['kubelet', 'kube-controller-manager', 'kube-apiserver'];
  const gate = { name: 'SidecarContainers', enabled: true, components };
  const found = await settings(k0sReadiness, 'v1.37.0+k0s.0', gateOfK0s(gate));
  const blockers = found.filter(({ state }) => state === 'blocker').map(({ message }) => message);
  expect(blockers).toHaveLength(3);
  expect(blockers.join()).not.toContain('kube-scheduler');
  expect(found).toContainEqual(
    expect.objectContaining({
      object: 'ClusterConfig kube-system/k0s',
      message: about('so the kubelet would not start'),
    }),
  );
});

test('a locked feature gate of k0s that some components set to its value is valid for all of them', async () => {
  const gate = { name: 'NodeLogQuery', enabled: true, components: ['kubelet'] };
  expect(await settings(k0sReadiness, 'v1.36.0+k0s.0', gateOfK0s(gate))).toEqual([
    expect.objectContaining({ state: 'ok' }),
  ]);
  const off = { ...gate, enabled: false };
  expect(await settings(k0sReadiness, 'v1.36.0+k0s.0', gateOfK0s(off))).toEqual([
    expect.objectContaining({ state: 'blocker', message: about('1.36 locked it to true') }),
  ]);
});

test('of the arguments that K3s passes on, only those that a component lost are blockers', async () => {
  const args = [
    'server',
    '--kube-controller-manager-arg',
    'bind-address=0.0.0.0',
    '--kube-controller-manager-arg',
    'concurrent-service-syncs=3',
    '--kube-scheduler-arg=bind-address=0.0.0.0',
    '--kube-scheduler-arg=feature-gates=SchedulerQueueingHints=true',
    '--kube-proxy-arg=metrics-bind-address=0.0.0.0',
  ];
  const annotations = { 'k3s.io/node-args': JSON.stringify(args) };
  const node = readyNode('s1') as { metadata: object };
  const server = { ...node, metadata: { ...node.metadata, annotations } };
  expect(await settings(rancherReadiness, 'v1.37.0+k3s1', server)).toEqual([
    expect.objectContaining({
      state: 'blocker',
      object: 'Node s1',
      message: about('flag --concurrent-service-syncs'),
    }),
    expect.objectContaining({
      state: 'blocker',
      object: 'Node s1',
      message: about('so kube-scheduler would not start'),
    }),
  ]);
});

const configMap = (name: string, data: object): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'kube-system' },
  data,
});

test('a feature gate that kube-proxy loses is found in the ConfigMap that kubeadm keeps', async () => {
  const config = 'kind: KubeProxyConfiguration\nfeatureGates: {TopologyAwareHints: true}';
  const objects = [
    configMap('kubeadm-config', { ClusterConfiguration: '{}' }),
    configMap('kube-proxy', { 'config.conf': config }),
  ];
  expect(await settings(kubeadmReadiness, 'v1.36.0', ...objects)).toEqual([
    {
      state: 'blocker',
      object: 'ConfigMap kube-system/kube-proxy',
      message: about('feature gate TopologyAwareHints in featureGates: Kubernetes 1.36 removed it'),
      cure: 'remove it before the upgrade',
    },
  ]);
});

const versions = async (from: string, to: string, ...objects: object[]) => {
  const servers = [{ '/version': JSON.stringify({ gitVersion: from }) }];
  return await checkVersions(readyContext({ objects, to, servers }));
};

test.each([
  ['registry.k8s.io/etcd:3.5.19-0', 'blocker', 'every member must be at 3.5.20 or later'],
  ['registry.k8s.io/etcd:3.5.21-0', 'warning', '3.5.26 or later is advised'],
  [
    'rancher/hardened-etcd:v3.5.21-k3s1-build20250612',
    'warning',
    'to 3.6: 3.5.26 or later is advised',
  ],
  ['registry.k8s.io/etcd:3.5.26-0', 'ok', 'v1.34.1 may follow v1.33.1'],
])('before etcd 3.6 comes, members of the image %s are %s', async (image, state, message) => {
  const member = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'etcd-cp1', namespace: 'kube-system', labels: { component: 'etcd' } },
    spec: { containers: [{ name: 'etcd', image }] },
  };
  expect(await versions('v1.33.1', 'v1.34.1', member)).toEqual([
    expect.objectContaining({ state, message: about(message) }),
  ]);
});

test.each([
  ['v1.35.2', 'v1.36.0', 'warning'],
  ['v1.37.1', 'v1.38.0', 'blocker'],
])(
  'a containerd that is too old for the kubelet: from %s to %s, it is a %s',
  async (from, to, state) => {
    const containerRuntimeVersion = 'containerd://1.7.27';
    const old = (build: string): object =>
      readyNode('w1', { nodeInfo: { kubeletVersion: `${from}${build}`, containerRuntimeVersion } });
    expect(await versions(from, to, old(''))).toContainEqual(
      expect.objectContaining({ state, object: 'Node w1', message: about('containerd 1.7.27') }),
    );
    // K3s brings a containerd with each version.
    expect(JSON.stringify(await versions(from, to, old('+k3s1')))).not.toContain('containerd');
  },
);

test('a server that was switched off before the upgrade is named', async () => {
  const conditions = [{ type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown' }];
  const off = readyNode('s2', { status: { conditions } });
  expect(await versions('v1.36.3', 'v1.37.0', readyNode('s1'), off)).toEqual([
    {
      state: 'warning',
      object: 'Node s2',
      message: 'it is not Ready',
      cure: 'make it Ready, or remove it from the cluster',
    },
  ]);
});

const drains = async (...objects: object[]) =>
  await checkDrains(readyContext({ objects: [readyNode('w1'), readyNode('w2'), ...objects] }));

test('of pods without a Deployment, only those that nothing owns are lost after a drain', async () => {
  const owner = {
    apiVersion: 'operators.coreos.com/v1alpha1',
    kind: 'CatalogSource',
    name: 'catalog',
    uid: 'x',
    controller: true,
  };
  const mirror = { annotations: { 'kubernetes.io/config.mirror': 'x' }, ownerReferences: [] };
  expect(
    await drains(
      placedPod('bare', 'w1', {}, { ownerReferences: [] }),
      placedPod('catalog-x', 'w1', {}, { ownerReferences: [owner] }),
      placedPod('static', 'w1', {}, mirror),
    ),
  ).toEqual([
    {
      state: 'warning',
      object: 'Pod app/bare',
      message: about('nothing creates it again after a drain'),
      cure: about('let a controller such as a Deployment create it'),
    },
  ]);
});

test('servers that an earlier upgrade left cordoned are named together', async () => {
  const cordon = {
    unschedulable: true,
    taints: [
      { effect: 'NoSchedule', key: 'node-role.kubernetes.io/control-plane' },
      { effect: 'NoSchedule', key: 'node.kubernetes.io/unschedulable' },
    ],
  };
  const objects = [
    readyNode('s1', { spec: cordon }),
    readyNode('s2', { spec: cordon }),
    readyNode('w1'),
  ];
  expect(await checkGround(readyContext({ objects }))).toContainEqual({
    state: 'warning',
    object: 'Node s1, s2',
    message: about('it is cordoned already'),
    cure: about('run kubectl uncordon'),
  });
});

test('replicas that refuse to share a node have no room on two nodes, and have on three', async () => {
  const term = {
    labelSelector: { matchExpressions: [{ key: 'app', operator: 'In', values: ['web'] }] },
    topologyKey: 'kubernetes.io/hostname',
  };
  const affinity = {
    podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] },
  };
  const two = [
    namespaceObject('app'),
    readyNode('w1'),
    readyNode('w2'),
    placedPod('web-1', 'w1', { affinity }),
    placedPod('web-2', 'w2', { affinity }),
  ];
  expect(await checkRoom(readyContext({ objects: two }))).toEqual([
    {
      state: 'warning',
      object: 'Pod app/web-1, app/web-2',
      message: about('it fits on no other node, and waits until its node is back'),
      cure: about('add room or another node for it'),
    },
  ]);
  expect(await checkRoom(readyContext({ objects: [...two, readyNode('w3')] }))).toEqual([
    expect.objectContaining({ state: 'ok' }),
  ]);
});
