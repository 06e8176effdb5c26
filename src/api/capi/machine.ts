/** Declares the fields of a Cluster API Machine that Refit reads. */
import {
  clusterScoped,
  type KubeObject,
  type LabelSelector,
  namespaced,
} from '../../kube/resources.ts';
import { MACHINE_ANNOTATION } from '../../signal/names.ts';

export interface Machine extends KubeObject {
  spec?: {
    clusterName?: string;
    version?: string;
    providerID?: string;
    bootstrap?: { configRef?: { kind?: string } };
    deletion?: { nodeDrainTimeoutSeconds?: number };
  };
  status?: { nodeRef?: { name?: string; uid?: string } };
}

export const machines = namespaced<Machine>('cluster.x-k8s.io/v1beta2', 'Machine');

/**
 * The strategy of a MachineDeployment or of a control plane. A number of Machines may also be a percentage, such as
 * `25%`.
 */
export interface Rollout {
  strategy?: {
    type?: string;
    rollingUpdate?: { maxSurge?: number | string; maxUnavailable?: number | string };
  };
}

export interface MachineDeployment extends KubeObject {
  spec?: { template?: { spec?: { version?: string } }; rollout?: Rollout };
}

export const machineDeployments = namespaced<MachineDeployment>(
  'cluster.x-k8s.io/v1beta2',
  'MachineDeployment',
);

/** A control plane of any provider. The contract of Cluster API requires `spec.version`. */
export interface ControlPlane extends KubeObject {
  spec?: { version?: string; rollout?: Rollout };
}

export const CONTROL_PLANE_GROUP = 'controlplane.cluster.x-k8s.io';

export interface Cluster extends KubeObject {
  spec?: {
    paused?: boolean;
    topology?: { version?: string };
    /** Newer versions of the API have the group, and earlier ones the group with its version. */
    controlPlaneRef?: { apiGroup?: string; apiVersion?: string; kind?: string; name?: string };
  };
}

export const clusters = namespaced<Cluster>('cluster.x-k8s.io/v1beta2', 'Cluster');

/** A MachineDrainRule. The API server accepts no empty list of selectors. */
export interface DrainRule extends KubeObject {
  spec: {
    drain: { behavior: string; order?: number };
    machines?: { selector?: LabelSelector; clusterSelector?: LabelSelector }[];
    pods?: { selector?: LabelSelector; namespaceSelector?: LabelSelector }[];
  };
}

export const drainRules = namespaced<DrainRule>('cluster.x-k8s.io/v1beta2', 'MachineDrainRule');

/** Cluster API sets these labels on each MachineSet of a MachineDeployment and on its Machines. */
export const SET_LABELS = {
  deployment: 'cluster.x-k8s.io/deployment-name',
  hash: 'machine-template-hash',
} as const;

/** Cluster API sets this label, with any value, on Machines of the control plane. */
export const CONTROL_PLANE_LABEL = 'cluster.x-k8s.io/control-plane';

/** The label of the objects of a Cluster, and the annotation of its Nodes, with the name of the Cluster. */
export const CLUSTER_NAME = 'cluster.x-k8s.io/cluster-name';

/** Cluster API writes these annotations to each Node. They name the Machine to which the Node belongs. */
export const NODE_ANNOTATIONS = {
  cluster: CLUSTER_NAME,
  namespace: 'cluster.x-k8s.io/cluster-namespace',
  machine: MACHINE_ANNOTATION,
} as const;

/**
 * The topology controller of Cluster API sets this label on the objects that it creates. It overwrites changes that
 * other clients make to these objects.
 */
export const TOPOLOGY_LABEL = 'topology.cluster.x-k8s.io/owned';

/** With this annotation, the webhook of Cluster API accepts any version in `spec.topology.version` of a Cluster. */
export const UNCHECKED_VERSION_ANNOTATION =
  'unsafe.topology.cluster.x-k8s.io/disable-update-version-check';

/** The registration of an extension, as far as Refit reads it. */
export interface ExtensionConfig extends KubeObject {
  spec?: { settings?: Record<string, string> };
  status?: { handlers?: { requestHook?: { hook?: string } }[] };
}

export const extensionConfigs = clusterScoped<ExtensionConfig>(
  'runtime.cluster.x-k8s.io/v1beta2',
  'ExtensionConfig',
);
