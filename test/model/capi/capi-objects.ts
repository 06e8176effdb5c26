/** The objects with which an exploration of Cluster API begins: the Nodes of the Machines of one owner. */
import { identityOf } from '../../../sandbox/cluster/machines.ts';
import type { MachineOwner } from '../../../src/dialects/capi/plan/machine-owners.ts';
import type { Role } from '../../../src/engine/model/rollout.ts';
import { CONTROL_PLANE } from '../../../src/kube/control-plane-label.ts';
import type { Node } from '../../../src/kube/resources.ts';
import { buildNode, withKubelet } from '../../support/builders/nodes.ts';
import { HOUR } from '../../support/clock/times.ts';
import { NOW } from '../cluster.ts';
import type { Qualities } from '../works/configurations.ts';

/** What a person, or another program, may do once in a run. */
export type CapiMove =
  | 'hour'
  | 'pause'
  /** The kubelet of the Node that represents a paused plan removes the pause from its Node. */
  | 'meddle'
  /** A person retries a Machine that failed. */
  | 'retry'
  /** A person removes the request of a Machine that failed, so that Cluster API asks again. */
  | 'again'
  | 'approve'
  /** Cluster API deletes the Machine whose Node represents the plan. */
  | 'delete'
  | 'cordon'
  /** The process of the leader ends, and with it the process forgets its drains. */
  | 'restart'
  /** The watch of a leader stops to show changes for some time. */
  | 'lag';

export interface CapiConfiguration {
  readonly name: string;
  /** For each Node, `bad` if each update of its Machine may fail. */
  readonly nodes: Qualities;
  readonly role: Role;
  /** False if each Machine is a plan of its own. */
  readonly hasOwner: boolean;
  /** The number of Machines that Cluster API lets be updated at once. */
  readonly maxUnavailable: number;
  readonly maxFailures: number;
  /** The waves of the policy: the first Machine, then all others, which may need an approval. */
  readonly waves?: 'in turn' | 'approved';
  readonly moves: readonly CapiMove[];
}

/** The moments of the clock. */
export const TIMES: readonly number[] = [NOW, NOW + HOUR];

export const OLD_VERSION = 'v1.35.0';
export const NEW_VERSION = 'v1.35.1';

export function ownerOf({ role }: CapiConfiguration): MachineOwner {
  return role === 'worker'
    ? { apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'MachineDeployment', name: 'md', uid: 'md' }
    : {
        apiVersion: 'controlplane.cluster.x-k8s.io/v1beta2',
        kind: 'KubeadmControlPlane',
        name: 'cp',
        uid: 'cp',
      };
}

const machineNameOf = (node: string): string => `m-${node}`;

export function machineKeyOf(node: string): string {
  return `default/${machineNameOf(node)}`;
}

/** Returns the Nodes at the beginning, by name. */
export function nodesOf({ nodes, role }: CapiConfiguration): Map<string, Node> {
  const labels = role === 'controller' ? { [CONTROL_PLANE]: '' } : {};
  return new Map(
    Object.keys(nodes).map((name) => {
      const { metadata, spec } = identityOf({ name: machineNameOf(name), node: name });
      const node: Node = { ...buildNode(name, { ...metadata, labels }), spec };
      return [name, withKubelet(node, OLD_VERSION)];
    }),
  );
}
