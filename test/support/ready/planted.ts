/**
 * Faults that somebody may have planted in a cluster before an upgrade to 1.37, and what `refit ready` must say about
 * each.
 */
import type { CheckName, FindingState } from '../../../src/ready/finding.ts';
import { AGENT_ANNOTATION, HEARTBEAT_ANNOTATION } from '../../../src/signal/names.ts';
import {
  args,
  budget,
  clusterConfiguration,
  configMap,
  custom,
  EMPTY,
  etcd,
  k0s,
  kcp,
  NAMESPACE,
  node,
  ON_NODES,
  own,
  plantedNode,
  plantedPod,
  READY,
  selectorOf,
  slice,
  TWO,
  template,
  webhook,
  workers,
} from './planted-objects.ts';

export interface PlantedFault {
  readonly title: string;
  readonly objects: readonly object[];
  readonly expected: {
    readonly check: CheckName;
    readonly state: FindingState;
    /** The object of the finding, or a part of it. */
    readonly object: string;
  };
  /** The target version, if it is not the usual one. */
  readonly to?: string;
}

const settings = (object: string) => ({ check: 'settings', state: 'blocker', object }) as const;
const KUBEADM = 'ConfigMap kube-system/kubeadm-config';
const K0S = 'ClusterConfig kube-system/k0s';
const SINCE = '2026-11-30T12:00:00Z';
const KCP = `KubeadmControlPlane ${NAMESPACE}/cp`;

export const PLANTED: readonly PlantedFault[] = [
  {
    title: 'kubeadm: a removed gate of the API server',
    objects: [
      clusterConfiguration('apiServer: {extraArgs: {feature-gates: "SidecarContainers=true"}}'),
    ],
    expected: settings(KUBEADM),
  },
  {
    title: 'kubeadm: a removed gate in the list form',
    objects: [
      clusterConfiguration(
        'scheduler: {extraArgs: [{name: feature-gates, value: "JobSuccessPolicy=true"}]}',
      ),
    ],
    expected: settings(KUBEADM),
  },
  {
    title: 'kubeadm: a removed flag of the controller manager',
    objects: [
      clusterConfiguration('controllerManager: {extraArgs: {concurrent-service-syncs: "3"}}'),
    ],
    expected: settings(KUBEADM),
  },
  {
    title: 'kubeadm: a gate of kubelets that is locked',
    objects: [
      EMPTY,
      configMap('kubelet-config', { kubelet: 'featureGates: {UserNamespacesSupport: false}' }),
    ],
    expected: settings('ConfigMap kube-system/kubelet-config'),
  },
  {
    title: 'kubeadm: a removed gate of kube-proxy',
    objects: [
      EMPTY,
      configMap('kube-proxy', { 'config.conf': 'featureGates: {SidecarContainers: true}' }),
    ],
    expected: settings('ConfigMap kube-system/kube-proxy'),
  },
  {
    title: 'K3s: a removed flag of a kubelet',
    objects: [args('k3s', 'agent', '--kubelet-arg', 'containerd=/run/x')],
    expected: settings('Node w1'),
  },
  {
    title: 'K3s: a removed gate of the API server',
    objects: [args('k3s', 'server', '--kube-apiserver-arg=feature-gates=AnyVolumeDataSource=true')],
    expected: settings('Node w1'),
  },
  {
    title: 'RKE2: a gate of the scheduler that is locked',
    objects: [
      args('rke2', 'server', '--kube-scheduler-arg=feature-gates=UserNamespacesSupport=false'),
    ],
    expected: settings('Node w1'),
  },
  {
    title: 'RKE2: a removed flag of the controller manager',
    objects: [
      args('rke2', 'server', '--kube-controller-manager-arg', 'concurrent-service-syncs=1'),
    ],
    expected: settings('Node w1'),
  },
  {
    title: 'k0s: a removed gate of the API server',
    objects: [k0s({ api: { extraArgs: { 'feature-gates': 'SidecarContainers=true' } } })],
    expected: settings(K0S),
  },
  {
    title: 'k0s: a gate for all components that is locked',
    objects: [k0s({ featureGates: [{ name: 'UserNamespacesSupport', enabled: false }] })],
    expected: settings(K0S),
  },
  {
    title: 'k0s: a removed gate in a worker profile',
    objects: [
      k0s({
        workerProfiles: [{ name: 'big', values: { featureGates: { SidecarContainers: true } } }],
      }),
    ],
    expected: settings(K0S),
  },
  {
    title: 'k0s: a removed gate in the configuration of workers',
    objects: [
      k0s({}),
      configMap('worker-config-default-1.36', {
        kubeletConfiguration: '{"featureGates":{"SidecarContainers":true}}',
      }),
    ],
    expected: settings('ConfigMap kube-system/worker-config-default-1.36'),
  },
  {
    title: 'Cluster API: a removed gate of the API server',
    objects: [
      plantedNode('w1', { annotations: ON_NODES }),
      kcp({
        clusterConfiguration: {
          apiServer: { extraArgs: [{ name: 'feature-gates', value: 'SidecarContainers=true' }] },
        },
      }),
    ],
    expected: settings(KCP),
  },
  {
    title: 'Cluster API: a removed flag of kubelets of the control plane',
    objects: [
      plantedNode('w1', { annotations: ON_NODES }),
      kcp({
        joinConfiguration: {
          nodeRegistration: { kubeletExtraArgs: [{ name: 'containerd', value: 'x' }] },
        },
      }),
    ],
    expected: settings(KCP),
  },
  {
    title: 'Cluster API: a removed flag of kubelets of workers',
    objects: [
      plantedNode('w1', { annotations: ON_NODES }),
      workers(),
      template({
        joinConfiguration: { nodeRegistration: { kubeletExtraArgs: { containerd: 'x' } } },
      }),
    ],
    expected: settings(`KubeadmConfigTemplate ${NAMESPACE}/workers`),
  },
  {
    title: 'a kubelet that would be too old',
    objects: [node({ kubeletVersion: 'v1.33.1' })],
    expected: { check: 'versions', state: 'blocker', object: 'Node w1' },
  },
  {
    title: 'a kubelet of k0s that would be too old',
    objects: [node({ kubeletVersion: 'v1.35.1+k0s' })],
    expected: { check: 'versions', state: 'blocker', object: 'Node w1' },
  },
  {
    title: 'a kubelet that is newer than the target',
    objects: [node({ kubeletVersion: 'v1.38.0' })],
    expected: { check: 'versions', state: 'blocker', object: 'Node w1' },
  },
  {
    title: 'API servers that would skip a minor version',
    objects: [],
    to: 'v1.38.0',
    expected: { check: 'versions', state: 'blocker', object: 'API server 127.0.0.1' },
  },
  {
    title: 'a kernel that kubeadm does not support',
    objects: [node({ kernelVersion: '5.14.0-70.el9' })],
    expected: { check: 'versions', state: 'warning', object: 'Node w1' },
  },
  {
    title: 'a containerd of the last supported line',
    objects: [node({ containerRuntimeVersion: 'containerd://1.7.27' })],
    expected: { check: 'versions', state: 'warning', object: 'Node w1' },
  },
  {
    title: 'a member of etcd that must be upgraded first',
    objects: [plantedNode('w1'), etcd('example.com/etcd:3.5.26-0')],
    expected: { check: 'versions', state: 'blocker', object: 'etcd' },
  },
  {
    title: 'a webhook that nothing serves',
    objects: [webhook()],
    expected: {
      check: 'webhooks',
      state: 'blocker',
      object: 'MutatingWebhookConfiguration planted',
    },
  },
  {
    title: 'a webhook for Nodes that nothing serves',
    objects: [webhook({}, { operations: ['UPDATE'], resources: ['nodes/status'] })],
    expected: {
      check: 'webhooks',
      state: 'blocker',
      object: 'MutatingWebhookConfiguration planted',
    },
  },
  {
    title: 'a webhook on one node that its own pod needs',
    objects: [webhook(), slice('w1')],
    expected: {
      check: 'webhooks',
      state: 'blocker',
      object: 'MutatingWebhookConfiguration planted',
    },
  },
  {
    title: 'a webhook with a namespace selector on one node',
    objects: [webhook({ namespaceSelector: selectorOf('default') }), slice('w1')],
    expected: {
      check: 'webhooks',
      state: 'warning',
      object: 'MutatingWebhookConfiguration planted',
    },
  },
  {
    title: 'a budget that never allows an eviction',
    objects: [...TWO, plantedPod('web-1', { app: 'web' }), budget({ maxUnavailable: 0 })],
    expected: { check: 'drains', state: 'blocker', object: `PodDisruptionBudget ${NAMESPACE}/web` },
  },
  {
    title: 'a pod that nothing creates again',
    objects: [...TWO, plantedPod('alone', { bare: true })],
    expected: { check: 'drains', state: 'warning', object: `Pod ${NAMESPACE}/alone` },
  },
  {
    title: 'a pod that is too large for every other node',
    objects: [
      plantedNode('w1'),
      plantedNode('w2', { allocatable: { cpu: '1' } }),
      plantedPod('web-1', { cpu: '2' }),
    ],
    expected: { check: 'room', state: 'warning', object: `Pod ${NAMESPACE}/web-1` },
  },
  {
    title: 'a pod with a required anti-affinity',
    objects: [
      ...TWO,
      plantedPod('web-1', {
        app: 'web',
        spec: {
          affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [own] } },
        },
      }),
      plantedPod('web-2', { app: 'web', node: 'w2' }),
    ],
    expected: { check: 'room', state: 'warning', object: `Pod ${NAMESPACE}/web-1` },
  },
  {
    title: 'a pod with a hard spread over hosts',
    objects: [
      ...TWO,
      plantedPod('web-1', {
        app: 'web',
        spec: {
          topologySpreadConstraints: [{ ...own, maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule' }],
        },
      }),
      plantedPod('web-2', { app: 'web', node: 'w2' }),
    ],
    expected: { check: 'room', state: 'warning', object: `Pod ${NAMESPACE}/web-1` },
  },
  {
    title: 'a pod with a node selector that no other node meets',
    objects: [
      plantedNode('w1', { labels: { disk: 'ssd' } }),
      plantedNode('w2'),
      plantedPod('web-1', { spec: { nodeSelector: { disk: 'ssd' } } }),
    ],
    expected: { check: 'room', state: 'warning', object: `Pod ${NAMESPACE}/web-1` },
  },
  {
    title: 'a pod whose other node has a taint',
    objects: [
      plantedNode('w1'),
      plantedNode('w2', { spec: { taints: [{ key: 'dedicated', effect: 'NoSchedule' }] } }),
      plantedPod('web-1'),
    ],
    expected: { check: 'room', state: 'warning', object: `Pod ${NAMESPACE}/web-1` },
  },
  {
    title: 'CloudNativePG with one instance',
    objects: [custom('postgresql.cnpg.io/v1', 'Cluster', { instances: 1 })],
    expected: { check: 'operators', state: 'blocker', object: `Cluster ${NAMESPACE}/main` },
  },
  {
    title: 'Zalando with one instance',
    objects: [
      custom('acid.zalan.do/v1', 'postgresql', { numberOfInstances: 1 }),
      budget({
        minAvailable: 1,
        selector: { matchLabels: { 'cluster-name': 'main', 'spilo-role': 'master' } },
      }),
    ],
    expected: { check: 'operators', state: 'blocker', object: `postgresql ${NAMESPACE}/main` },
  },
  {
    title: 'a faulted volume of Longhorn',
    objects: [
      custom('longhorn.io/v1beta2', 'Volume', {}, { state: 'attached', robustness: 'faulted' }),
    ],
    expected: { check: 'operators', state: 'blocker', object: `Volume ${NAMESPACE}/main` },
  },
  {
    title: 'a virtual machine that cannot be migrated',
    objects: [
      custom(
        'kubevirt.io/v1',
        'VirtualMachineInstance',
        { evictionStrategy: 'LiveMigrate' },
        { conditions: [{ type: 'LiveMigratable', status: 'False' }] },
      ),
    ],
    expected: {
      check: 'operators',
      state: 'blocker',
      object: `VirtualMachineInstance ${NAMESPACE}/main`,
    },
  },
  {
    title: 'Ceph with an error',
    objects: [custom('ceph.rook.io/v1', 'CephCluster', {}, { ceph: { health: 'HEALTH_ERR' } })],
    expected: { check: 'operators', state: 'blocker', object: `CephCluster ${NAMESPACE}/main` },
  },
  {
    title: 'a node that somebody cordoned',
    objects: [plantedNode('w1', { spec: { unschedulable: true } })],
    expected: { check: 'ground', state: 'warning', object: 'Node w1' },
  },
  {
    title: 'a node without room on its disk',
    objects: [plantedNode('w1', { conditions: [READY, { type: 'DiskPressure', status: 'True' }] })],
    expected: { check: 'ground', state: 'warning', object: 'Node w1' },
  },
  {
    title: 'a clock that is an hour off',
    objects: [
      plantedNode('w1'),
      {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name: 'w1', namespace: 'kube-node-lease' },
        spec: { holderIdentity: 'w1', renewTime: 'IN AN HOUR' },
      },
    ],
    expected: { check: 'ground', state: 'blocker', object: 'Node w1' },
  },
  {
    title: 'k0s: a removed flag that is written with underscores',
    objects: [k0s({ network: { kubeProxy: { extraArgs: { boot_id_file: '/x' } } } })],
    expected: settings(K0S),
  },
  {
    title: 'a webhook that a new server needs for the annotations of a Namespace',
    objects: [
      webhook(
        { namespaceSelector: selectorOf('kube-system') },
        { operations: ['UPDATE'], resources: ['namespaces'] },
      ),
    ],
    expected: {
      check: 'webhooks',
      state: 'blocker',
      object: 'MutatingWebhookConfiguration planted',
    },
  },
  {
    title: 'an agent on a host without room for a download',
    objects: [
      plantedNode('w1', {
        annotations: {
          [AGENT_ANNOTATION]: JSON.stringify({ version: '0.3.0', since: SINCE }),
          [HEARTBEAT_ANNOTATION]: JSON.stringify({ at: SINCE, since: SINCE, room: 1024 }),
        },
      }),
    ],
    expected: { check: 'ground', state: 'blocker', object: 'Node w1' },
  },
  {
    title: 'a Plan of Rancher whose account may not drain nodes',
    objects: [
      node({ kubeletVersion: 'v1.36.3+k3s1' }),
      custom('upgrade.cattle.io/v1', 'Plan', {
        drain: {},
        serviceAccountName: 'nobody',
        upgrade: { image: 'rancher/k3s-upgrade' },
      }),
    ],
    expected: { check: 'ground', state: 'blocker', object: `Plan ${NAMESPACE}/main` },
  },
];
