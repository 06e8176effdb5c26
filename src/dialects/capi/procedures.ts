/** Decides which procedure updates a Machine, and compares it with what the agent on its node is for. */
import type { Machine } from '../../api/capi/machine.ts';
import { kubeletVersionOf, type Node } from '../../kube/resources.ts';
import { type Procedure, procedureOf } from '../../signal/agent-presence.ts';

/**
 * Undefined for a bootstrap provider that Refit does not know, such as those of RKE2, k3s, Talos and MicroK8s.
 * The version text of k0s names it, with any provider. A Machine without a provider is one of k0s.
 */
export function procedureFor(
  { metadata, spec }: Machine,
  version: string,
  node: Node,
): Procedure | undefined {
  if ([version, kubeletVersionOf(node)].some((text) => text?.includes('+k0s'))) return 'k0s';
  const { kind } = spec?.bootstrap?.configRef ?? {};
  const isOwnedByKubeadm = metadata.ownerReferences?.some(
    (owner) => owner.kind === 'KubeadmControlPlane',
  );
  if (kind === 'KubeadmConfig' || isOwnedByKubeadm) return 'kubeadm';
  return kind === undefined || kind.startsWith('K0s') ? 'k0s' : undefined;
}

/** Why the agent on the node cannot update the Machine; undefined if it can, and where there is none. */
export function otherProcedure(machine: Machine, version: string, node: Node): string | undefined {
  const [wanted, found] = [procedureFor(machine, version, node), procedureOf(node)];
  if (wanted === undefined) return unknownProvider(machine);
  if (found === undefined || found === wanted) return undefined;
  return `the agent on node ${node.metadata.name} is for ${found}: its Machine needs one with --procedure ${wanted}`;
}

export function unknownProvider({ metadata, spec }: Machine): string {
  const kind = spec?.bootstrap?.configRef?.kind;
  return `Machine ${metadata.name} has a bootstrap config of kind ${kind}, which Refit does not know: it updates Machines of KubeadmConfig and of k0s`;
}
