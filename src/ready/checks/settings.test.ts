/** Tests the check of flags and feature gates, and where each dialect reads them. */
import { expect, test } from 'vitest';
import { readyContext, readyNode } from '../../../test/support/ready/world.ts';
import { k0sReadiness } from '../../dialects/autopilot/plan/readiness.ts';
import { clusterApiReadiness } from '../../dialects/capi/plan/readiness.ts';
import { rancherReadiness } from '../../dialects/cattle/plan/readiness.ts';
import { kubeadmReadiness } from '../../dialects/kubeadm/plan/readiness.ts';
import type { DialectReadiness } from '../context.ts';
import { checkSettings } from './settings.ts';

const ask = async (dialect: DialectReadiness, objects: readonly object[], to = 'v1.37.0') =>
  await checkSettings(readyContext({ objects, to, dialects: [dialect] }));

const configMap = (name: string, data: object): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'kube-system' },
  data,
});
const kubeadmConfig = (text: string) => configMap('kubeadm-config', { ClusterConfiguration: text });
const clusterConfig = (spec: object): object => ({
  apiVersion: 'k0s.k0sproject.io/v1beta1',
  kind: 'ClusterConfig',
  metadata: { name: 'k0s', namespace: 'kube-system' },
  spec,
});
const withArguments = (name: string, annotation: string, args: readonly string[]): object => {
  const node = readyNode(name) as { metadata: object };
  return {
    ...node,
    metadata: { ...node.metadata, annotations: { [annotation]: JSON.stringify(args) } },
  };
};
const staticPod = (component: string, args: readonly string[]): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: `${component}-cp1`,
    namespace: 'kube-system',
    labels: { component },
    annotations: { 'kubernetes.io/config.mirror': 'x' },
  },
  spec: { containers: [{ name: component, command: [component, ...args] }] },
});
const OF_CLUSTER = { 'cluster.x-k8s.io/cluster-name': 'blue' };
/** A Node of the Cluster prod/blue. */
const ofCluster = (): object => {
  const node = readyNode('m1') as { metadata: object };
  const annotations = { ...OF_CLUSTER, 'cluster.x-k8s.io/cluster-namespace': 'prod' };
  return { ...node, metadata: { ...node.metadata, annotations } };
};
const controlPlane = (spec: object): object => ({
  apiVersion: 'controlplane.cluster.x-k8s.io/v1beta2',
  kind: 'KubeadmControlPlane',
  metadata: { name: 'cp', namespace: 'prod', labels: OF_CLUSTER },
  spec: { kubeadmConfigSpec: spec },
});

const GONE = 'Kubernetes 1.37 removed it';
test.each<[string, DialectReadiness, readonly object[], string, string]>([
  [
    'kubeadm: a gate of the API server in the ConfigMap',
    kubeadmReadiness,
    [kubeadmConfig('apiServer: {extraArgs: {feature-gates: "SidecarContainers=true"}}')],
    'ConfigMap kube-system/kubeadm-config',
    `feature gate SidecarContainers in apiServer.extraArgs: ${GONE}, so kube-apiserver would not start`,
  ],
  [
    'kubeadm: a gate in the configuration of kubelets',
    kubeadmReadiness,
    [
      kubeadmConfig('{}'),
      configMap('kubelet-config', { kubelet: 'featureGates: {SidecarContainers: true}' }),
    ],
    'ConfigMap kube-system/kubelet-config',
    `feature gate SidecarContainers in featureGates: ${GONE}, so the kubelet would not start`,
  ],
  [
    'kubeadm: a flag that somebody wrote into a manifest by hand',
    kubeadmReadiness,
    [kubeadmConfig('{}'), staticPod('kube-controller-manager', ['--concurrent-service-syncs=3'])],
    'Pod kube-system/kube-controller-manager-cp1',
    `flag --concurrent-service-syncs in the static pod of kube-controller-manager: ${GONE}, so kube-controller-manager would not start`,
  ],
  [
    'K3s: an argument of the kubelet with its value behind a space',
    rancherReadiness,
    [withArguments('w1', 'k3s.io/node-args', ['agent', '--kubelet-arg', 'containerd=/run/x'])],
    'Node w1',
    `flag --containerd in the annotation k3s.io/node-args: ${GONE}, so the kubelet would not start`,
  ],
  [
    'RKE2: an argument of the scheduler with an equals sign',
    rancherReadiness,
    [
      withArguments('s1', 'rke2.io/node-args', [
        'server',
        '--kube-scheduler-arg=feature-gates=SidecarContainers=true',
      ]),
    ],
    'Node s1',
    `feature gate SidecarContainers in the annotation rke2.io/node-args: ${GONE}, so kube-scheduler would not start`,
  ],
  [
    'k0s: an argument of the API server in the ClusterConfig',
    k0sReadiness,
    [clusterConfig({ api: { extraArgs: { 'feature-gates': 'SidecarContainers=true' } } })],
    'ClusterConfig kube-system/k0s',
    `feature gate SidecarContainers in spec.api.extraArgs: ${GONE}, so kube-apiserver would not start`,
  ],
  [
    'k0s: a raw argument of kube-proxy',
    k0sReadiness,
    [
      clusterConfig({
        network: { kubeProxy: { rawArgs: ['--feature-gates', 'SidecarContainers=true'] } },
      }),
    ],
    'ClusterConfig kube-system/k0s',
    `feature gate SidecarContainers in spec.network.kubeProxy.rawArgs: ${GONE}, so kube-proxy would not start`,
  ],
  [
    'k0s: a gate that is set for one component',
    k0sReadiness,
    [
      clusterConfig({
        featureGates: [{ name: 'UserNamespacesSupport', enabled: false, components: ['kubelet'] }],
      }),
    ],
    'ClusterConfig kube-system/k0s',
    'feature gate UserNamespacesSupport in spec.featureGates: Kubernetes 1.36 locked it to true, so the kubelet would not start with false',
  ],
  [
    'k0s: a gate in a worker profile',
    k0sReadiness,
    [
      clusterConfig({
        workerProfiles: [{ name: 'big', values: { featureGates: { SidecarContainers: true } } }],
      }),
    ],
    'ClusterConfig kube-system/k0s',
    `feature gate SidecarContainers in featureGates of spec.workerProfiles big: ${GONE}, so the kubelet would not start`,
  ],
  [
    'k0s: a gate in the configuration that the workers read',
    k0sReadiness,
    [
      clusterConfig({}),
      configMap('worker-config-default-1.36', {
        kubeletConfiguration: '{"featureGates":{"SidecarContainers":true}}',
      }),
    ],
    'ConfigMap kube-system/worker-config-default-1.36',
    `feature gate SidecarContainers in featureGates of data.kubeletConfiguration: ${GONE}, so the kubelet would not start`,
  ],
  [
    'Cluster API: an argument of kubelets that join',
    clusterApiReadiness,
    [
      ofCluster(),
      controlPlane({
        joinConfiguration: {
          nodeRegistration: { kubeletExtraArgs: [{ name: 'containerd', value: 'x' }] },
        },
      }),
    ],
    'KubeadmControlPlane prod/cp',
    `flag --containerd in spec.kubeadmConfigSpec.joinConfiguration.nodeRegistration.kubeletExtraArgs: ${GONE}, so the kubelet would not start`,
  ],
  [
    'Cluster API: a gate of the API server',
    clusterApiReadiness,
    [
      ofCluster(),
      controlPlane({
        clusterConfiguration: {
          apiServer: { extraArgs: [{ name: 'feature-gates', value: 'SidecarContainers=true' }] },
        },
      }),
    ],
    'KubeadmControlPlane prod/cp',
    `feature gate SidecarContainers in spec.kubeadmConfigSpec.clusterConfiguration.apiServer.extraArgs: ${GONE}, so kube-apiserver would not start`,
  ],
])(
  '%s blocks an upgrade to the version that lacks it',
  async (_title, dialect, objects, object, message) => {
    const found = await ask(dialect, objects);
    expect(found.filter(({ state }) => state === 'blocker')).toEqual([
      {
        state: 'blocker',
        object,
        message: expect.stringContaining(message) as string,
        cure: 'remove it before the upgrade',
      },
    ]);
    // The version before still has the setting.
    const before = await ask(dialect, objects, 'v1.35.0');
    expect(before.filter(({ state }) => state === 'blocker')).toEqual([]);
  },
);

test('a setting of many nodes is one finding', async () => {
  const nodes = ['w1', 'w2', 'w3'].map((name) =>
    withArguments(name, 'k3s.io/node-args', ['agent', '--kubelet-arg=containerd=/run/x']),
  );
  expect(await ask(rancherReadiness, nodes)).toEqual([
    expect.objectContaining({ state: 'blocker', object: 'Node w1, Node w2, Node w3' }),
  ]);
});

test('a setting that no known version has is no answer, and not a blocker', async () => {
  const objects = [kubeadmConfig('scheduler: {extraArgs: {who-knows: "1"}}')];
  expect(await ask(kubeadmReadiness, objects)).toEqual([
    {
      state: 'unknown',
      object: 'ConfigMap kube-system/kubeadm-config',
      message:
        'flag --who-knows in scheduler.extraArgs: no kube-scheduler from 1.33 to 1.37 has it',
      cure: 'check whether the new version still accepts it',
    },
  ]);
});

test('settings that the target has are ok, and the answer names the places', async () => {
  const objects = [kubeadmConfig('apiServer: {extraArgs: {v: "2", audit_log_path: "-"}}')];
  expect(await ask(kubeadmReadiness, objects)).toEqual([
    {
      state: 'ok',
      message: '2 settings in ConfigMap kube-system/kubeadm-config are valid in v1.37.0',
    },
  ]);
});

test('a target that this Refit does not know is judged by the newest one, and says so', async () => {
  const objects = [
    kubeadmConfig('apiServer: {extraArgs: {feature-gates: "SidecarContainers=true"}}'),
  ];
  expect(await ask(kubeadmReadiness, objects, 'v1.40.0')).toEqual([
    expect.objectContaining({ state: 'blocker' }),
    {
      state: 'unknown',
      message:
        'this Refit knows the flags and feature gates of 1.33 to 1.37, and not those of v1.40.0, so they are judged as for 1.37',
      cure: 'use a newer Refit, and read the changelog of the new version',
    },
  ]);
});

test.each<[string, DialectReadiness, readonly object[], readonly string[], string]>([
  [
    'a ConfigMap of kubeadm',
    kubeadmReadiness,
    [],
    ['ConfigMap'],
    'ConfigMap kube-system/kubeadm-config',
  ],
  ['the annotations of Nodes', rancherReadiness, [], ['Node'], 'the annotations of Nodes'],
  [
    'a control plane of Cluster API',
    clusterApiReadiness,
    [ofCluster()],
    ['KubeadmControlPlane'],
    'objects of the kind KubeadmControlPlane',
  ],
  [
    'the configuration of k0s in files',
    k0sReadiness,
    [readyNode('w1', { nodeInfo: { kubeletVersion: 'v1.36.3+k0s' } })],
    [],
    'the configuration of the k0s controllers',
  ],
])('%s that cannot be read is unknown', async (_title, dialect, objects, forbidden, object) => {
  const found = await checkSettings(readyContext({ objects, forbidden, dialects: [dialect] }));
  expect(found).toContainEqual(expect.objectContaining({ state: 'unknown', object }));
  expect(found.filter(({ state }) => state === 'ok')).toEqual([]);
});

test.each([
  ['42', 'the whole document'],
  ['[]', 'the whole document'],
  ['apiServer: 1', 'apiServer'],
  ['apiServer: {extraArgs: "feature-gates=SidecarContainers=true"}', 'apiServer.extraArgs'],
  ['scheduler: {extraArgs: {v: 2}}', 'scheduler.extraArgs'],
  ['scheduler: {extraArgs: ["v=2"]}', 'scheduler.extraArgs'],
  ['featureGates: [A]', 'featureGates'],
])('a ClusterConfiguration %s of kubeadm is unknown in its strange place', async (text, place) => {
  expect(await ask(kubeadmReadiness, [kubeadmConfig(text)])).toEqual([
    {
      state: 'unknown',
      object: 'ConfigMap kube-system/kubeadm-config',
      message: `its flags and feature gates: Refit does not understand the form of ${place} in data.ClusterConfiguration`,
    },
  ]);
});

test('what is understood beside a strange place is judged', async () => {
  const text = 'scheduler: 1\napiServer: {extraArgs: {feature-gates: "SidecarContainers=true"}}';
  const found = await ask(kubeadmReadiness, [kubeadmConfig(text)]);
  expect(found.map(({ state }) => state)).toEqual(['blocker', 'unknown']);
});

test.each<[string, DialectReadiness, readonly object[]]>([
  [
    'kubeadm',
    kubeadmReadiness,
    [kubeadmConfig('{}'), configMap('kubelet-config', { kubelet: 'featureGates: A=true' })],
  ],
  [
    'k0s',
    k0sReadiness,
    [clusterConfig({}), configMap('worker-config-default-1.36', { kubeletConfiguration: '42' })],
  ],
])(
  'a configuration of kubelets of %s in a strange form is unknown',
  async (_title, dialect, objects) => {
    expect((await ask(dialect, objects)).map(({ state }) => state)).toEqual(['unknown']);
  },
);

test('a version that is older than all known ones needs no newer Refit', async () => {
  const found = await ask(kubeadmReadiness, [kubeadmConfig('{}')], 'v1.20.0');
  expect(found).toEqual([
    expect.objectContaining({
      state: 'unknown',
      cure: 'read the changelog of that version: Kubernetes maintains 1.35 and later',
    }),
  ]);
});

test('a cluster without any known place is unknown', async () => {
  expect(await ask(kubeadmReadiness, [])).toEqual([
    { state: 'unknown', message: 'Refit found no place where flags and feature gates are set' },
  ]);
});
