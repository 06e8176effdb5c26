/** Declares the fields of a Cluster API Machine that Refit reads. */
import { type KubeObject, type LabelSelector, namespaced } from '../../kube/resources.ts';
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

export const machineDeployments = namespaced('cluster.x-k8s.io/v1beta2', 'MachineDeployment');

export interface Cluster extends KubeObject {
  spec?: { paused?: boolean };
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

/** Cluster API writes these annotations to each Node. They name the Machine that the Node belongs to. */
export const NODE_ANNOTATIONS = {
  cluster: 'cluster.x-k8s.io/cluster-name',
  namespace: 'cluster.x-k8s.io/cluster-namespace',
  machine: MACHINE_ANNOTATION,
} as const;
