/** Builds the objects of planted faults, as a real API server accepts them. */

export const NAMESPACE = 'planted';

export const configMap = (name: string, data: object): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'kube-system' },
  data,
});
export const clusterConfiguration = (text: string): object =>
  configMap('kubeadm-config', { ClusterConfiguration: text });
export const EMPTY = clusterConfiguration('{}');
export const k0s = (spec: object): object => ({
  apiVersion: 'k0s.k0sproject.io/v1beta1',
  kind: 'ClusterConfig',
  metadata: { name: 'k0s', namespace: 'kube-system' },
  spec,
});
/** The labels of the objects of a Cluster, and the annotations of its Nodes. */
export const OF_CLUSTER = { 'cluster.x-k8s.io/cluster-name': 'blue' };
export const ON_NODES = { ...OF_CLUSTER, 'cluster.x-k8s.io/cluster-namespace': NAMESPACE };
export const kcp = (spec: object): object => ({
  apiVersion: 'controlplane.cluster.x-k8s.io/v1beta2',
  kind: 'KubeadmControlPlane',
  metadata: { name: 'cp', namespace: NAMESPACE, labels: OF_CLUSTER },
  spec: { kubeadmConfigSpec: spec },
});
export const template = (spec: object): object => ({
  apiVersion: 'bootstrap.cluster.x-k8s.io/v1beta2',
  kind: 'KubeadmConfigTemplate',
  metadata: { name: 'workers', namespace: NAMESPACE },
  spec: { template: { spec } },
});

/** Returns the MachineDeployment that makes Machines from the template. */
export const workers = (): object => ({
  apiVersion: 'cluster.x-k8s.io/v1beta2',
  kind: 'MachineDeployment',
  metadata: { name: 'workers', namespace: NAMESPACE },
  spec: {
    clusterName: 'blue',
    template: {
      spec: { bootstrap: { configRef: { kind: 'KubeadmConfigTemplate', name: 'workers' } } },
    },
  },
});

export interface NodeChoices {
  readonly annotations?: object;
  readonly labels?: object;
  readonly spec?: object;
  readonly nodeInfo?: object;
  readonly conditions?: readonly object[];
  readonly allocatable?: object;
}

export const READY = { type: 'Ready', status: 'True' };
/** Returns a Node that no simulated kubelet changes. */
export const plantedNode = (name: string, more: NodeChoices = {}): object => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: {
    name,
    labels: { 'kubernetes.io/hostname': name, ...more.labels },
    annotations: more.annotations,
  },
  spec: more.spec ?? {},
  status: {
    allocatable: { cpu: '4', memory: '8Gi', pods: '110', ...more.allocatable },
    conditions: more.conditions ?? [READY],
    nodeInfo: {
      kubeletVersion: 'v1.36.3',
      kernelVersion: '6.1.0',
      containerRuntimeVersion: 'containerd://2.3.3',
      architecture: 'amd64',
      bootID: 'b',
      kubeProxyVersion: '',
      machineID: 'm',
      operatingSystem: 'linux',
      osImage: 'Linux',
      systemUUID: 'u',
      ...more.nodeInfo,
    },
  },
});
export const args = (product: 'k3s' | 'rke2', ...list: string[]): object =>
  plantedNode('w1', { annotations: { [`${product}.io/node-args`]: JSON.stringify(list) } });
export const node = (nodeInfo: object): object => plantedNode('w1', { nodeInfo });

export interface PodChoices {
  readonly app?: string;
  readonly node?: string;
  readonly spec?: object;
  readonly cpu?: string;
  readonly bare?: boolean;
}

/** Returns a pod that has an owner, unless it is bare. */
export const plantedPod = (name: string, more: PodChoices = {}): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name,
    namespace: NAMESPACE,
    labels: { app: more.app ?? name },
    ...(more.bare !== true && {
      ownerReferences: [
        { apiVersion: 'v1', kind: 'Namespace', name: NAMESPACE, uid: 'OWNER', controller: true },
      ],
    }),
  },
  spec: {
    nodeName: more.node ?? 'w1',
    terminationGracePeriodSeconds: 0,
    containers: [
      { name: 'c', image: 'example.com/none', resources: { requests: { cpu: more.cpu ?? '1' } } },
    ],
    ...more.spec,
  },
});
export const TWO = [plantedNode('w1'), plantedNode('w2')];
export const budget = (spec: object): object => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: 'web', namespace: NAMESPACE },
  spec: { selector: { matchLabels: { app: 'web' } }, ...spec },
});
/** The namespace of what serves the planted webhooks. */
const HOOKED = 'kube-public';
export const selectorOf = (name: string): object => ({
  matchLabels: { 'kubernetes.io/metadata.name': name },
});
export const webhook = (more: object = {}, rule: object = {}): object => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'MutatingWebhookConfiguration',
  metadata: { name: 'planted' },
  webhooks: [
    {
      name: 'planted.example.com',
      admissionReviewVersions: ['v1'],
      sideEffects: 'None',
      failurePolicy: 'Fail',
      timeoutSeconds: 1,
      // No fault has objects in this namespace, and the objects of the other faults must still be accepted.
      namespaceSelector: selectorOf(HOOKED),
      clientConfig: { service: { name: 'hook', namespace: HOOKED } },
      rules: [
        {
          apiGroups: [''],
          apiVersions: ['v1'],
          operations: ['CREATE'],
          resources: ['pods'],
          ...rule,
        },
      ],
      ...more,
    },
  ],
});
export const slice = (...nodes: string[]): object => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: {
    name: 'hook',
    namespace: HOOKED,
    labels: { 'kubernetes.io/service-name': 'hook' },
  },
  addressType: 'IPv4',
  endpoints: nodes.map((nodeName, index) => ({
    addresses: [`10.9.0.${index + 1}`],
    nodeName,
    conditions: { ready: true },
  })),
});
export const custom = (
  apiVersion: string,
  kind: string,
  spec: object,
  status: object = {},
): object => ({
  apiVersion,
  kind,
  metadata: { name: 'main', namespace: NAMESPACE },
  spec,
  status,
});
export const etcd = (image: string): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'etcd-cp1', namespace: 'kube-system', labels: { component: 'etcd' } },
  spec: { nodeName: 'w1', containers: [{ name: 'etcd', image }] },
});
export const HOSTNAME = 'kubernetes.io/hostname';
export const own = { labelSelector: { matchLabels: { app: 'web' } }, topologyKey: HOSTNAME };

/** The kinds of other products in PLANTED, as `group/version kind plural`. */
export const CUSTOM_KINDS = [
  ['k0s.k0sproject.io', 'v1beta1', 'ClusterConfig', 'clusterconfigs'],
  ['controlplane.cluster.x-k8s.io', 'v1beta2', 'KubeadmControlPlane', 'kubeadmcontrolplanes'],
  ['bootstrap.cluster.x-k8s.io', 'v1beta2', 'KubeadmConfigTemplate', 'kubeadmconfigtemplates'],
  ['bootstrap.cluster.x-k8s.io', 'v1beta2', 'KubeadmConfig', 'kubeadmconfigs'],
  ['cluster.x-k8s.io', 'v1beta2', 'MachineDeployment', 'machinedeployments'],
  ['cluster.x-k8s.io', 'v1beta2', 'MachineSet', 'machinesets'],
  ['cluster.x-k8s.io', 'v1beta2', 'MachinePool', 'machinepools'],
  ['cluster.x-k8s.io', 'v1beta2', 'Machine', 'machines'],
  ['postgresql.cnpg.io', 'v1', 'Cluster', 'clusters'],
  ['acid.zalan.do', 'v1', 'postgresql', 'postgresqls'],
  ['longhorn.io', 'v1beta2', 'Volume', 'volumes'],
  ['longhorn.io', 'v1beta2', 'Setting', 'settings'],
  ['kubevirt.io', 'v1', 'VirtualMachineInstance', 'virtualmachineinstances'],
  ['kubevirt.io', 'v1', 'KubeVirt', 'kubevirts'],
  ['ceph.rook.io', 'v1', 'CephCluster', 'cephclusters'],
  ['upgrade.cattle.io', 'v1', 'Plan', 'plans'],
] as const;
