/** Reads the flags and feature gates that Cluster API gives to kubeadm. */
import { CLUSTER_NAME } from '../../../api/capi/machine.ts';
import {
  type KubeObject,
  keyOf,
  namespaced,
  nodes,
  type Resource,
} from '../../../kube/resources.ts';
import type { Asking } from '../../../ready/asking.ts';
import {
  type DialectReadiness,
  readPlace,
  type SettingsFound,
  together,
  unreadPlace,
} from '../../../ready/context.ts';
import {
  memberOf,
  type Setting,
  settingsOfClusterConfiguration,
  settingsOfExtraArgs,
} from '../../../versions/settings.ts';
import { agentFindings } from '../../shared/agents-ground.ts';
import { kubeletRights } from './kubelet-rights.ts';

interface Configured extends KubeObject {
  readonly spec?: unknown;
}

/** The kinds with a configuration of kubeadm, and the path of it. */
const KINDS: readonly {
  readonly resource: Resource<Configured>;
  readonly path: readonly string[];
}[] = [
  {
    resource: namespaced<Configured>(
      'controlplane.cluster.x-k8s.io/v1beta2',
      'KubeadmControlPlane',
    ),
    path: ['kubeadmConfigSpec'],
  },
  {
    resource: namespaced<Configured>('bootstrap.cluster.x-k8s.io/v1beta2', 'KubeadmConfigTemplate'),
    path: ['template', 'spec'],
  },
];

export const clusterApiReadiness: DialectReadiness = {
  settings: async (asking) => await settingsIn(asking, () => true),
  async machines({ list, allows }, to) {
    const asked = await list(nodes);
    // Other checks say already that Nodes cannot be read.
    if (asked.kind === 'unknown') return [];
    return [
      ...agentFindings({ kind: 'Node', objects: asked.value }, 'kubeadm'),
      ...(await kubeletRights(asked.value, { allows }, to)),
    ];
  },
};

/** Names a Cluster of Cluster API. */
export interface ClusterName {
  readonly cluster: string;
  readonly namespace: string;
}

/** Returns the readiness of one Cluster. The objects that configure its nodes are in the management cluster. */
export function readinessOfCluster(
  management: Asking,
  { cluster, namespace }: ClusterName,
): DialectReadiness {
  const isOwn = ({ metadata }: KubeObject): boolean =>
    metadata.namespace === namespace &&
    (metadata.labels?.[CLUSTER_NAME] === cluster ||
      metadata.ownerReferences?.some(({ kind, name }) => kind === 'Cluster' && name === cluster) ===
        true);
  return {
    ...clusterApiReadiness,
    settings: async () => await settingsIn(management, isOwn),
  };
}

async function settingsIn(
  asking: Asking,
  isMeant: (object: KubeObject) => boolean,
): Promise<SettingsFound> {
  const found = await Promise.all(KINDS.map(async (each) => await askKind(each, asking, isMeant)));
  return together(found.flat());
}

async function askKind(
  { resource, path }: (typeof KINDS)[number],
  { list }: Asking,
  isMeant: (object: KubeObject) => boolean,
): Promise<SettingsFound[]> {
  const asked = await list(resource);
  if (asked.kind === 'unknown')
    return [unreadPlace(`objects of the kind ${resource.kind}`, asked.why)];
  return asked.value.filter(isMeant).map((each) => {
    const object = `${resource.kind} ${keyOf(each)}`;
    const configuration = path.reduce<unknown>((value, name) => memberOf(value, name), each.spec);
    const settings = settingsOfKubeadm(configuration, ['spec', ...path].join('.'));
    return readPlace(object, settings);
  });
}

/** Returns the settings in a spec of a KubeadmConfig. `at` is its path. */
export function settingsOfKubeadm(spec: unknown, at: string): Setting[] {
  const cluster = memberOf(spec, 'clusterConfiguration');
  const ofCluster = settingsOfClusterConfiguration(cluster, `${at}.clusterConfiguration.`);
  const ofKubelets = ['initConfiguration', 'joinConfiguration'].flatMap((field) => {
    const registration = memberOf(memberOf(spec, field), 'nodeRegistration');
    const place = `${at}.${field}.nodeRegistration.kubeletExtraArgs`;
    return settingsOfExtraArgs('kubelet', memberOf(registration, 'kubeletExtraArgs'), place);
  });
  return [...ofCluster, ...ofKubelets];
}
