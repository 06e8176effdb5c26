/** The objects of a cluster of Cluster API whose Machines are this proof's machines, as its user writes them. */
import { of, reference, workersOf } from '../../capi/machines/objects.ts';
import { START_AGENT } from '../agents/agent.ts';
import { documents, KUBELET_CONFIGURATION, OPERATOR, onVersion1, PROXY_CONFIGURATION } from '../cluster.ts';
import { REPOSITORY } from '../images/kubernetes.ts';

export const CLUSTER = 'metal';
export const WORKERS = `${CLUSTER}-workers`;

const INFRASTRUCTURE = 'infrastructure.cluster.x-k8s.io';
const MORE = '/etc/kubeadm-more.yaml';

export interface ClusterWanted {
  readonly controlPlanes: number;
  readonly workers: number;
  readonly version: string;
}

export function clusterObjects({ controlPlanes, workers, version }: ClusterWanted): object[] {
  const backend = { inMemory: {} };
  const infrastructureRef = reference(INFRASTRUCTURE, 'DevMachineTemplate', CLUSTER);
  return [
    of('cluster.x-k8s.io', 'Cluster', CLUSTER, {
      clusterNetwork: { pods: { cidrBlocks: ['10.244.0.0/16'] }, services: { cidrBlocks: ['10.96.0.0/12'] } },
      controlPlaneRef: reference('controlplane.cluster.x-k8s.io', 'KubeadmControlPlane', CLUSTER),
      infrastructureRef: reference(INFRASTRUCTURE, 'DevCluster', CLUSTER),
    }),
    of(INFRASTRUCTURE, 'DevCluster', CLUSTER, { backend, controlPlaneEndpoint: { host: OPERATOR, port: 6443 } }),
    of(INFRASTRUCTURE, 'DevMachineTemplate', CLUSTER, { template: { spec: { backend } } }),
    of('controlplane.cluster.x-k8s.io', 'KubeadmControlPlane', CLUSTER, {
      replicas: controlPlanes,
      version,
      rollout: { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0 } } },
      machineTemplate: { spec: { infrastructureRef } },
      kubeadmConfigSpec: controlPlaneConfig(),
    }),
    of('bootstrap.cluster.x-k8s.io', 'KubeadmConfigTemplate', WORKERS, { template: { spec: workerConfig() } }),
    workersOf(CLUSTER, workers, version),
  ];
}

/** The provider fills these in, as cloud-init does from its metadata. */
const nodeRegistration = (): object => ({
  kubeletExtraArgs: [{ name: 'provider-id', value: '{{ ds.meta_data.provider_id }}' }],
  ...(onVersion1() && { ignorePreflightErrors: ['SystemVerification'] }),
});

const workerConfig = (): object => ({
  joinConfiguration: { nodeRegistration: nodeRegistration() },
  postKubeadmCommands: [START_AGENT],
});

function controlPlaneConfig(): object {
  const localAPIEndpoint = { advertiseAddress: '{{ ds.meta_data.local_ipv4 }}', bindPort: 6443 };
  const kubelets = { ...KUBELET_CONFIGURATION, ...(onVersion1() && { failCgroupV1: false }) };
  return {
    clusterConfiguration: { imageRepository: REPOSITORY },
    initConfiguration: { nodeRegistration: nodeRegistration(), localAPIEndpoint },
    joinConfiguration: { nodeRegistration: nodeRegistration(), controlPlane: { localAPIEndpoint } },
    // Cluster API has no fields for these, and kubeadm only wants them once.
    files: [{ path: MORE, content: `---\n${documents([kubelets, PROXY_CONFIGURATION])}` }],
    preKubeadmCommands: [`[ ! -e /run/kubeadm/kubeadm.yaml ] || cat ${MORE} >>/run/kubeadm/kubeadm.yaml`],
    postKubeadmCommands: [START_AGENT],
  };
}
