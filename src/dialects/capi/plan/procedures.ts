/** Decides which procedure updates a Machine, and whether the agent on its node supports that procedure. */
import type { Machine } from '../../../api/capi/machine.ts';
import { kubeletVersionOf, type Node } from '../../../kube/resources.ts';
import { type Procedure, procedureOf } from '../../../signal/agent-presence.ts';
import { withPlusSign } from '../../../util/version.ts';

/**
 * Only kubeadm writes this annotation. Later versions of kubeadm may stop writing it, so a Node without the annotation
 * may still be a node of kubeadm.
 */
const KUBEADM_ANNOTATION = 'kubeadm.alpha.kubernetes.io/cri-socket';

/**
 * Returns the procedure for a Machine. If the version contains `k0s`, the procedure is the one for k0s, and the
 * provider does not matter. Otherwise the kind of the bootstrap config decides. If there is no config, the Node
 * decides. Returns undefined for providers that Refit does not support, such as the providers of RKE2, k3s, Talos and
 * MicroK8s.
 */
export function procedureFor(
  { metadata, spec }: Machine,
  version: string,
  node: Node,
): Procedure | undefined {
  const texts = [version, kubeletVersionOf(node)].map((text = '') => withPlusSign(text));
  if (texts.some((text) => text.includes('+k0s'))) return 'k0s';
  const { kind } = spec?.bootstrap?.configRef ?? {};
  const isOwnedByKubeadm = metadata.ownerReferences?.some(
    (owner) => owner.kind === 'KubeadmControlPlane',
  );
  if (kind === 'KubeadmConfig' || isOwnedByKubeadm) return 'kubeadm';
  if (kind === undefined) return procedureShownBy(node);
  return kind.startsWith('K0s') ? 'k0s' : undefined;
}

function procedureShownBy(node: Node): Procedure | undefined {
  const isJoinedByKubeadm = node.metadata.annotations?.[KUBEADM_ANNOTATION] !== undefined;
  return procedureOf(node) ?? (isJoinedByKubeadm ? 'kubeadm' : undefined);
}

/** Returns why Refit cannot update the Machine to the version; undefined if it can, or if the node has no agent. */
export function refusalByProcedure(
  machine: Machine,
  version: string,
  node: Node,
): string | undefined {
  const wanted = procedureFor(machine, version, node);
  const found = procedureOf(node);
  if (wanted === undefined) return unknownProvider(machine);
  const reported = withPlusSign(version);
  if (wanted === 'k0s' && version !== reported)
    return `spec.version of Machine ${machine.metadata.name}: ${version} is not a version that a node can report; use ${reported}`;
  if (found === undefined || found === wanted) return undefined;
  return `the agent on node ${node.metadata.name} is for ${found}: its Machine needs one with --procedure ${wanted}`;
}

export function unknownProvider({ metadata, spec }: Machine): string {
  const kind = spec?.bootstrap?.configRef?.kind;
  const known = 'only Machines with a KubeadmConfig or a config of k0s are updated';
  return kind === undefined
    ? `Machine ${metadata.name} has no spec.bootstrap.configRef, and its Node does not show whether k0s or kubeadm runs there: ${known}`
    : `Machine ${metadata.name} has a bootstrap config of kind ${kind}, which Refit does not know: ${known}`;
}
