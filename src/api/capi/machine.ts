/** The fields that Refit reads of a Cluster API Machine. */
import { namespaced } from '../../kube/resources.ts';
import type { KubeObject } from '../../kube/types.ts';

export interface Machine extends KubeObject {
  spec?: { clusterName?: string; version?: string; providerID?: string };
  status?: { nodeRef?: { name?: string; uid?: string } };
}

export const machines = namespaced<Machine>('cluster.x-k8s.io/v1beta2', 'Machine', 'machines');

/** Label of control plane Machines, with any value. */
export const CONTROL_PLANE_LABEL = 'cluster.x-k8s.io/control-plane';

/** On each Node, written by Cluster API: the Machine that it belongs to. */
export const NODE_ANNOTATIONS = {
  cluster: 'cluster.x-k8s.io/cluster-name',
  namespace: 'cluster.x-k8s.io/cluster-namespace',
  machine: 'cluster.x-k8s.io/machine',
} as const;
