/** The objects of a cluster of Cluster API, as a user would write them, and the fields that the proof reads. */
import { generateKeyPairSync } from 'node:crypto';
import { type Condition, type KubeObject, namespaced } from '../../../../src/kube/resources.ts';
import { createAuthority, validFrom } from '../../../../tools/controlplane/certs.ts';

export const NAMESPACE = 'fleet';
/** The name of the Cluster whose Machines have their Nodes on the real API server. */
export const CLUSTER = 'field';
/** The name of the MachineDeployment of the workers. */
export const WORKERS = `${CLUSTER}-workers`;

export interface ProofMachine extends KubeObject {
  spec: {
    clusterName: string;
    version: string;
    providerID?: string;
    bootstrap?: { configRef?: { name: string }; dataSecretName?: string };
    infrastructureRef?: { name: string };
  };
  status?: { nodeRef?: { name: string; uid?: string }; conditions?: Condition[] };
}

export interface Scalable extends KubeObject {
  spec: {
    version?: string;
    replicas?: number;
    template?: { spec: ProofMachine['spec'] };
    kubeadmConfigSpec?: { files?: readonly object[] };
  };
  status?: { replicas?: number; observedGeneration?: number; conditions?: Condition[] };
}

const API = 'cluster.x-k8s.io/v1beta2';
const CONTROL_PLANE_API = 'controlplane.cluster.x-k8s.io/v1beta2';
const BOOTSTRAP = 'bootstrap.cluster.x-k8s.io';
const INFRASTRUCTURE = 'infrastructure.cluster.x-k8s.io';

export const capiMachines = namespaced<ProofMachine>(API, 'Machine');
export const machineSets = namespaced<Scalable>(API, 'MachineSet');
export const machineDeployments = namespaced<Scalable>(API, 'MachineDeployment');
export const machineHealthChecks = namespaced(API, 'MachineHealthCheck');
export const capiClusters = namespaced(API, 'Cluster');
export const machineDrainRules = namespaced(API, 'MachineDrainRule');
export const controlPlanes = namespaced<Scalable>(CONTROL_PLANE_API, 'KubeadmControlPlane');

export interface ClusterWanted {
  readonly name: string;
  readonly controlPlanes: 1 | 3;
  readonly workers: number;
  readonly versions: { readonly controlPlane: string; readonly workers: string };
  /**
   * An administrator's kubeconfig for the API server that has the Nodes. If it is absent, the kubeconfig of the
   * in-memory provider is used.
   */
  readonly kubeconfig?: string;
}

/**
 * Returns the objects of a cluster. If `kubeconfig` is set, etcd is declared as external, because there is no etcd pod
 * through which a manager could reach it.
 */
export function clusterObjects({
  name,
  controlPlanes: count,
  workers,
  versions,
  kubeconfig,
}: ClusterWanted): object[] {
  const etcd = {
    endpoints: ['https://127.0.0.1:2379'],
    caFile: '/ca.crt',
    certFile: '/tls.crt',
    keyFile: '/tls.key',
  };
  const external = kubeconfig === undefined ? {} : { etcd: { external: etcd } };
  const skipped = {
    'controlplane.cluster.x-k8s.io/skip-coredns': '',
    'controlplane.cluster.x-k8s.io/skip-kube-proxy': '',
  };
  return [
    ...(kubeconfig === undefined ? [] : secretsOf(name, kubeconfig)),
    of('cluster.x-k8s.io', 'Cluster', name, {
      clusterNetwork: {
        pods: { cidrBlocks: ['10.244.0.0/16'] },
        services: { cidrBlocks: ['10.96.0.0/16'] },
      },
      controlPlaneRef: reference('controlplane.cluster.x-k8s.io', 'KubeadmControlPlane', name),
      infrastructureRef: reference(INFRASTRUCTURE, 'DevCluster', name),
    }),
    {
      ...of(INFRASTRUCTURE, 'DevCluster', name, { backend: { inMemory: {} } }),
      // The provider adds an annotation of its own, and panics if the object has no annotations.
      metadata: { name, namespace: NAMESPACE, annotations: { 'proof.refit.dev/cluster': name } },
    },
    of(INFRASTRUCTURE, 'DevMachineTemplate', name, {
      template: { spec: { backend: { inMemory: {} } } },
    }),
    {
      ...of('controlplane.cluster.x-k8s.io', 'KubeadmControlPlane', name, {
        replicas: count,
        version: versions.controlPlane,
        rollout: {
          strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: count === 1 ? 1 : 0 } },
        },
        machineTemplate: {
          spec: { infrastructureRef: reference(INFRASTRUCTURE, 'DevMachineTemplate', name) },
        },
        kubeadmConfigSpec: {
          clusterConfiguration: { apiServer: { certSANs: ['127.0.0.1'] }, ...external },
        },
      }),
      metadata: { name, namespace: NAMESPACE, annotations: skipped },
    },
    bootstrapTemplate(`${name}-workers`, []),
    workersOf(name, workers, versions.workers),
  ];
}

export interface BootstrapFile {
  readonly path: string;
  readonly content: string;
}

/** Returns a template. Templates are never changed: a MachineDeployment gets a new template instead. */
export function bootstrapTemplate(name: string, files: readonly BootstrapFile[]): object {
  const node = { nodeRegistration: { criSocket: 'unix:///run/containerd/containerd.sock' } };
  const spec = { joinConfiguration: node, ...(files.length > 0 && { files }) };
  return of(BOOTSTRAP, 'KubeadmConfigTemplate', name, { template: { spec } });
}

export function workersOf(cluster: string, replicas: number, version: string): object {
  const name = `${cluster}-workers`;
  const labels = {
    'cluster.x-k8s.io/cluster-name': cluster,
    'cluster.x-k8s.io/deployment-name': name,
  };
  const rollingUpdate = { maxSurge: 0, maxUnavailable: 1 };
  const spec = {
    clusterName: cluster,
    version,
    bootstrap: { configRef: reference(BOOTSTRAP, 'KubeadmConfigTemplate', name) },
    infrastructureRef: reference(INFRASTRUCTURE, 'DevMachineTemplate', cluster),
  };
  return of('cluster.x-k8s.io', 'MachineDeployment', name, {
    clusterName: cluster,
    replicas,
    rollout: { strategy: { type: 'RollingUpdate', rollingUpdate } },
    selector: { matchLabels: labels },
    template: { metadata: { labels }, spec },
  });
}

/**
 * Returns the Secrets that a user provides. Cluster API leaves existing Secrets as they are, and creates only the
 * missing Secrets.
 */
function secretsOf(cluster: string, kubeconfig: string): object[] {
  // The in-memory provider accepts only RSA keys.
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({
    type: 'pkcs8',
    format: 'pem',
  });
  const { certificate, key } = createAuthority(
    { commonName: `${cluster}-etcd` },
    validFrom(Date.now()),
    rsa,
  );
  const secret = (purpose: string, stringData: Readonly<Record<string, string>>): object => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: `${cluster}-${purpose}`,
      namespace: NAMESPACE,
      labels: { 'cluster.x-k8s.io/cluster-name': cluster },
    },
    stringData,
  });
  const pair = { 'tls.crt': certificate, 'tls.key': key };
  return [
    secret('kubeconfig', { value: kubeconfig }),
    secret('etcd', pair),
    secret('apiserver-etcd-client', pair),
  ];
}

export function of(group: string, kind: string, name: string, spec: object): object {
  return { apiVersion: `${group}/v1beta2`, kind, metadata: { name, namespace: NAMESPACE }, spec };
}

export function reference(apiGroup: string, kind: string, name: string): object {
  return { apiGroup, kind, name };
}

/** Returns the objects as a JSON list for `applyManifest`. */
export function listOf(items: readonly object[]): string {
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', metadata: {}, items });
}
