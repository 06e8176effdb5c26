/** Owns what Refit writes into a Node to keep pods away: its cordon and the soft taint, each with its owner. */
import type { Node } from '../kube/types.ts';
import { CORDON_ANNOTATION, PENDING_TAINT } from './marks.ts';

/**
 * Who of us cordoned the node. Also told where somebody has uncordoned it meanwhile: that mark has to go as well, or it
 * would claim a cordon that a person sets later.
 */
export function cordonOwner({ metadata }: Node): string | undefined {
  return metadata.annotations?.[CORDON_ANNOTATION];
}

/** The very same node where it is cordoned already, by whomever. */
export function withCordon(node: Node, owner: string): Node {
  if (node.spec?.unschedulable) return node;
  const annotations = { ...node.metadata.annotations, [CORDON_ANNOTATION]: owner };
  return { ...node, metadata: { ...node.metadata, annotations }, spec: { ...node.spec, unschedulable: true } };
}

/** Takes a cordon of ours away with its mark; the very same node where there is none. */
export function withoutCordon(node: Node): Node {
  if (cordonOwner(node) === undefined) return node;
  const { [CORDON_ANNOTATION]: _owner, ...annotations } = node.metadata.annotations ?? {};
  const { unschedulable: _unschedulable, ...spec } = node.spec ?? {};
  return { ...node, metadata: { ...node.metadata, annotations }, spec };
}

/** Takes any cordon away, whoever set it; the very same node where there is none. */
export function withoutAnyCordon(node: Node): Node {
  if (node.spec?.unschedulable !== true) return withoutCordon(node);
  const { unschedulable: _cordon, ...spec } = node.spec;
  const { spec: _before, ...rest } = withoutCordon(node);
  return { ...rest, spec };
}

/** For which rollout the node is still to be done; empty where that is not told, undefined where it does not have the taint. */
export function pendingOwner({ spec }: Node): string | undefined {
  const taint = spec?.taints?.find(isPending);
  return taint && (taint.value ?? '');
}

/**
 * Whether `owner` may take the taint of `found` away: its own, and that of earlier versions, which named nobody, so that
 * nobody else ever would.
 */
export function isPendingFor(found: string | undefined, owner: string): boolean {
  return found === owner || found === '';
}

/** The very same node where it has the taint already, whoever's: a node has one of a key and an effect. */
export function withPendingTaint(node: Node, owner: string): Node {
  if (pendingOwner(node) !== undefined) return node;
  const taint = { ...PENDING_TAINT, value: owner };
  return { ...node, spec: { ...node.spec, taints: [...(node.spec?.taints ?? []), taint] } };
}

/** The very same node where it has no taint for this owner to take. */
export function withoutPendingTaint(node: Node, owner: string): Node {
  if (!isPendingFor(pendingOwner(node), owner)) return node;
  const { taints = [], ...spec } = node.spec ?? {};
  const others = taints.filter((taint) => !isPending(taint));
  return { ...node, spec: others.length === 0 ? spec : { ...spec, taints: others } };
}

function isPending({ key, effect }: { key: string; effect: string }): boolean {
  return key === PENDING_TAINT.key && effect === PENDING_TAINT.effect;
}
