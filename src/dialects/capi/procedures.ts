/** Decides which procedure updates a Machine, and compares it with what the agent on its node is for. */
import type { Machine } from '../../api/capi/machine.ts';
import { kubeletVersionOf, type Node } from '../../kube/resources.ts';
import { type Procedure, procedureOf } from '../../signal/agent-presence.ts';

/** The version text of k0s names it. Cluster API's kubeadm providers make all other Machines that are known. */
export function procedureFor({ metadata, spec }: Machine, version: string, node: Node): Procedure {
  const isK0s = [version, kubeletVersionOf(node)].some((text) => text?.includes('+k0s'));
  const isKubeadm =
    spec?.bootstrap?.configRef?.kind === 'KubeadmConfig' ||
    metadata.ownerReferences?.some(({ kind }) => kind === 'KubeadmControlPlane');
  return isKubeadm && !isK0s ? 'kubeadm' : 'k0s';
}

/** Why the agent on the node cannot update the Machine; undefined if it can, and where there is none. */
export function otherProcedure(machine: Machine, version: string, node: Node): string | undefined {
  const [wanted, found] = [procedureFor(machine, version, node), procedureOf(node)];
  if (found === undefined || found === wanted) return undefined;
  return `the agent on node ${node.metadata.name} is for ${found}: its Machine needs one with --procedure ${wanted}`;
}
