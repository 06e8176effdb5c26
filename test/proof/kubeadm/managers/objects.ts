/**
 * The objects of a cluster of Cluster API, as a user would write them. The Machines of the cluster are the machines of
 * this proof.
 */
import { of, reference, workersOf } from '../../capi/machines/objects.ts';
import { KUBELET_CONFIGURATION, onVersion1 } from '../../machines/kernel.ts';
import { OPERATOR } from '../../machines/namespaces.ts';
import { START_AGENT } from '../agents/agent.ts';
import { documents, PROXY_CONFIGURATION } from '../cluster.ts';
import { REPOSITORY } from '../images/kubernetes.ts';

export const CLUSTER = 'metal';
export const WORKERS = `${CLUSTER}-workers`;

const INFRASTRUCTURE = 'infrastructure.cluster.x-k8s.io';
const MORE = '/etc/kubeadm-more.yaml';

/**
 * The fields that an update changes. One updater of Refit changes the version. The other updater of Refit changes a
 * file and an argument of the kubelet.
 */
export interface Wanted {
  readonly version: string;
  readonly motd: string;
  /** `--v` of the kubelet. */
  readonly verbosity: string;
}

export const MOTD = '/etc/motd';
/** What the agents may change: all files and arguments that the KubeadmConfigs contain. */
export const ALLOWED = [MORE, MOTD, 'kubelet'];

const UPDATERS = {
  apiVersion: 'upgrade.refit.dev/v1alpha1',
  kind: 'UpdaterSet',
  metadata: { name: 'in-place' },
  spec: {
    uncovered: 'Refuse',
    updaters: [
      { name: 'configuration', nodeConfiguration: {}, onUnavailable: 'Wait' },
      { name: 'refit', refit: {} },
    ],
  },
};

export function clusterObjects(
  counts: { readonly controlPlanes: number; readonly workers: number },
  wanted: Wanted,
) {
  const backend = { inMemory: {} };
  const infrastructureRef = reference(INFRASTRUCTURE, 'DevMachineTemplate', CLUSTER);
  return [
    of('cluster.x-k8s.io', 'Cluster', CLUSTER, {
      clusterNetwork: {
        pods: { cidrBlocks: ['10.244.0.0/16'] },
        services: { cidrBlocks: ['10.96.0.0/12'] },
      },
      controlPlaneRef: reference('controlplane.cluster.x-k8s.io', 'KubeadmControlPlane', CLUSTER),
      infrastructureRef: reference(INFRASTRUCTURE, 'DevCluster', CLUSTER),
    }),
    of(INFRASTRUCTURE, 'DevCluster', CLUSTER, {
      backend,
      controlPlaneEndpoint: { host: OPERATOR, port: 6443 },
    }),
    of(INFRASTRUCTURE, 'DevMachineTemplate', CLUSTER, { template: { spec: { backend } } }),
    of('controlplane.cluster.x-k8s.io', 'KubeadmControlPlane', CLUSTER, {
      replicas: counts.controlPlanes,
      version: wanted.version,
      rollout: { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0 } } },
      machineTemplate: { spec: { infrastructureRef } },
      kubeadmConfigSpec: controlPlaneConfig(wanted),
    }),
    workersTemplate(WORKERS, wanted),
    workersOf(CLUSTER, counts.workers, wanted.version),
    UPDATERS,
  ];
}

/**
 * Returns the registration of a node. The provider replaces the placeholders of the template with metadata, as
 * cloud-init does.
 */
const nodeRegistration = ({ verbosity }: Wanted): object => ({
  kubeletExtraArgs: [
    { name: 'provider-id', value: '{{ ds.meta_data.provider_id }}' },
    { name: 'v', value: verbosity },
  ],
  ...(onVersion1() && { ignorePreflightErrors: ['SystemVerification'] }),
});

/** Returns a template. Templates are never changed: a MachineDeployment gets a new template instead. */
export function workersTemplate(name: string, wanted: Wanted): object {
  const spec = {
    joinConfiguration: { nodeRegistration: nodeRegistration(wanted) },
    files: [{ path: MOTD, content: wanted.motd }],
    postKubeadmCommands: [START_AGENT],
  };
  return of('bootstrap.cluster.x-k8s.io', 'KubeadmConfigTemplate', name, { template: { spec } });
}

export function controlPlaneConfig(wanted: Wanted): object {
  const localAPIEndpoint = { advertiseAddress: '{{ ds.meta_data.local_ipv4 }}', bindPort: 6443 };
  const registration = { nodeRegistration: nodeRegistration(wanted) };
  const kubelets = { ...KUBELET_CONFIGURATION, ...(onVersion1() && { failCgroupV1: false }) };
  return {
    clusterConfiguration: { imageRepository: REPOSITORY },
    initConfiguration: { ...registration, localAPIEndpoint },
    joinConfiguration: { ...registration, controlPlane: { localAPIEndpoint } },
    files: [
      // Cluster API has no fields for these configurations, and kubeadm needs them only once.
      { path: MORE, content: `---\n${documents([kubelets, PROXY_CONFIGURATION])}` },
      { path: MOTD, content: wanted.motd },
    ],
    preKubeadmCommands: [
      `[ ! -e /run/kubeadm/kubeadm.yaml ] || cat ${MORE} >>/run/kubeadm/kubeadm.yaml`,
    ],
    postKubeadmCommands: [START_AGENT],
  };
}
