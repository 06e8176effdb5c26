/** Makes healthy clusters at random: everything in them may stay as it is during an upgrade to 1.37. */
import { factsOfMinor } from '../../../src/versions/facts.ts';
import type { Component } from '../../../src/versions/minor-facts.ts';
import { pick, seededRandom } from '../../faults/random.ts';
import {
  NAMESPACE,
  OF_CLUSTER,
  ON_NODES,
  plantedNode,
  plantedPod,
  selectorOf,
} from './planted-objects.ts';

const HOSTNAME = 'kubernetes.io/hostname';
const KERNELS = ['5.4.0-1', '5.10.200', '5.15.0-91-generic', '6.1.0-18-amd64', '6.8.0', '7.0.1'];
const PRODUCTS = ['kubeadm', 'k3s', 'k0s', 'capi'] as const;

/** Returns the same cluster for the same seed. */
export function healthyCluster(seed: number): object[] {
  const random = seededRandom(seed);
  const size = 2 + Math.floor(random() * 12);
  const product = pick(random, PRODUCTS);
  const names = Array.from({ length: size }, (_each, index) => `n${index}`);
  const args = JSON.stringify(['agent', `--kubelet-arg=${gates('kubelet', random)}`]);
  const annotations = {
    ...(product === 'k3s' && { 'k3s.io/node-args': args }),
    ...(product === 'capi' && ON_NODES),
  };
  const nodes = names.map((name) =>
    plantedNode(name, { annotations, nodeInfo: { kernelVersion: pick(random, KERNELS) } }),
  );
  const apps = Array.from(
    { length: 1 + Math.floor(random() * 5) },
    (_each, index) => `app${index}`,
  );
  return [
    ...nodes,
    ...names.map(leaseOf),
    ...apps.flatMap((app) => workload(app, names, random)),
    ...configuration(product, random),
    ...(random() < 0.5 ? webhook(names, random) : []),
    ...operators(random),
  ];
}

/** Returns the Lease that the kubelet of the node has renewed a moment ago. */
function leaseOf(name: string): object {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace: 'kube-node-lease' },
    spec: { holderIdentity: name, leaseDurationSeconds: 40, renewTime: 'RIGHT NOW' },
  };
}

/** Returns some gates that 1.36 and 1.37 have, with values that both accept, as the value of `feature-gates`. */
function gates(component: Component, random: () => number): string {
  const from = factsOfMinor(36);
  const to = factsOfMinor(37);
  const names = [
    'ContextualLogging',
    'AllBeta',
    'NodeSwap',
    'ImageVolume',
    'GracefulNodeShutdown',
    'PodDeletionCost',
  ];
  const chosen = names.filter(
    (name) =>
      random() < 0.5 &&
      from?.gateOf(component, name) !== undefined &&
      to?.gateOf(component, name) !== undefined,
  );
  const values = chosen.map((name) => {
    const gate = to?.gateOf(component, name);
    const value = gate?.locked === true ? gate.default : random() < 0.5;
    return `${name}=${value}`;
  });
  return `feature-gates=${values.join(',')}`;
}

const valueOf = (flag: string): string => flag.slice(flag.indexOf('=') + 1);

function configuration(product: (typeof PRODUCTS)[number], random: () => number): object[] {
  const list = (component: Component) => ({
    'feature-gates': valueOf(gates(component, random)),
    v: '2',
  });
  if (product === 'kubeadm') {
    const text = JSON.stringify({
      apiServer: { extraArgs: list('kube-apiserver') },
      controllerManager: { extraArgs: list('kube-controller-manager') },
      scheduler: { extraArgs: list('kube-scheduler') },
    });
    const metadata = { name: 'kubeadm-config', namespace: 'kube-system' };
    return [
      { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { ClusterConfiguration: text } },
    ];
  }
  if (product === 'k0s') {
    const metadata = { name: 'k0s', namespace: 'kube-system' };
    const spec = {
      api: { extraArgs: list('kube-apiserver') },
      scheduler: { extraArgs: list('kube-scheduler') },
    };
    return [{ apiVersion: 'k0s.k0sproject.io/v1beta1', kind: 'ClusterConfig', metadata, spec }];
  }
  if (product === 'capi') {
    const metadata = { name: 'cp', namespace: NAMESPACE, labels: OF_CLUSTER };
    const clusterConfiguration = { apiServer: { extraArgs: [{ name: 'v', value: '3' }] } };
    const spec = { kubeadmConfigSpec: { clusterConfiguration } };
    return [
      {
        apiVersion: 'controlplane.cluster.x-k8s.io/v1beta2',
        kind: 'KubeadmControlPlane',
        metadata,
        spec,
      },
    ];
  }
  return [];
}

function workload(app: string, names: readonly string[], random: () => number): object[] {
  const count = 1 + Math.floor(random() * 4);
  const own = { labelSelector: { matchLabels: { app } }, topologyKey: HOSTNAME };
  const soft = {
    podAntiAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: own }],
    },
  };
  const spec = random() < 0.3 ? { affinity: soft } : {};
  const pods = Array.from({ length: count }, (_each, index) =>
    plantedPod(`${app}-${index}`, { app, node: pick(random, names), cpu: '100m', spec }),
  );
  if (random() < 0.5) return pods;
  const budget =
    count > 1 ? pick(random, [{ maxUnavailable: 1 }, { minAvailable: 1 }]) : { maxUnavailable: 1 };
  return [
    ...pods,
    {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: app, namespace: NAMESPACE },
      spec: { selector: { matchLabels: { app } }, ...budget },
    },
  ];
}

const OF_MACHINES = {
  apiGroups: ['cluster.x-k8s.io'],
  apiVersions: ['*'],
  operations: ['CREATE', 'UPDATE'],
  resources: ['machines'],
};

function webhook(names: readonly string[], random: () => number): object[] {
  const isServed = random() < 0.7;
  const [first = '', second = ''] = names;
  const slice = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: 'hook',
      namespace: NAMESPACE,
      labels: { 'kubernetes.io/service-name': 'hook' },
    },
    addressType: 'IPv4',
    endpoints: (random() < 0.5 ? [first] : [first, second]).map((nodeName, index) => ({
      addresses: [`10.9.0.${index + 1}`],
      nodeName,
      conditions: { ready: true },
    })),
  };
  const hook = {
    name: 'healthy.example.com',
    admissionReviewVersions: ['v1'],
    sideEffects: 'None',
    timeoutSeconds: 1,
    // A webhook that nothing serves is harmless if it may fail.
    failurePolicy: isServed ? 'Fail' : 'Ignore',
    // The API server still accepts the pods of the cluster.
    namespaceSelector: selectorOf('kube-public'),
    clientConfig: { service: { name: 'hook', namespace: NAMESPACE } },
    rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
  };
  const configured = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: 'healthy' },
    // As in a management cluster of Cluster API, whose manager has one replica, a webhook about Machines is on one node.
    webhooks: [
      hook,
      { ...hook, name: 'machines.example.com', namespaceSelector: {}, rules: [OF_MACHINES] },
    ],
  };
  return isServed ? [slice, configured] : [configured];
}

function operators(random: () => number): object[] {
  const metadata = { name: 'main', namespace: NAMESPACE };
  const all = [
    {
      apiVersion: 'postgresql.cnpg.io/v1',
      kind: 'Cluster',
      metadata,
      spec: { instances: 3 },
      status: { instances: 3, readyInstances: 3 },
    },
    {
      apiVersion: 'acid.zalan.do/v1',
      kind: 'postgresql',
      metadata,
      spec: { numberOfInstances: 2 },
    },
    {
      apiVersion: 'longhorn.io/v1beta2',
      kind: 'Volume',
      metadata,
      spec: { numberOfReplicas: 3 },
      status: { state: 'attached', robustness: 'healthy' },
    },
    {
      apiVersion: 'ceph.rook.io/v1',
      kind: 'CephCluster',
      metadata,
      status: { ceph: { health: 'HEALTH_OK' } },
    },
  ];
  return all.filter(() => random() < 0.2);
}
