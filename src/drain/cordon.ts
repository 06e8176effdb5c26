/** Owns what Refit writes into a Node to keep pods away: its cordon and the soft taint, each with its owner. */
import type { Node } from '../kube/types.ts';

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

/** Names the rollout that cordoned the node; a cordon without it is somebody else's and stays. */
export const CORDON_ANNOTATION = 'upgrade.refit.dev/cordoned-by';

/** A soft taint on nodes that are still to be done, so that evicted pods go where they need not leave again; its value names the rollout. */
export const PENDING_TAINT = { key: 'upgrade.refit.dev/pending', effect: 'PreferNoSchedule' } as const;

export interface Owner {
  /** Uid of the plan; of a node that cordons itself, which knows no more, the plan's own name for this run: any text. */
  readonly plan: string;
  /** Of another attempt nothing is known. */
  readonly attempt: string;
  /** Kind of the plan: only who knows the plans of a kind can tell that one is gone. Absent where a node cordons itself. */
  readonly kind?: string | undefined;
}

/** How every kind in Kubernetes looks, and no time. */
const KIND = /^[A-Z][A-Za-z0-9]*$/;

export function writeOwner({ plan, attempt, kind }: Owner): string {
  return [plan, attempt, ...(kind === undefined ? [] : [kind])].join('/');
}

/** From its end: a plan's own name may hold slashes, what follows it does not. */
export function readOwner(text: string): Owner | undefined {
  const words = text.split('/');
  const kind = words.length > 2 && KIND.test(words.at(-1) ?? '') ? words.pop() : undefined;
  const attempt = words.pop() ?? '';
  const plan = words.join('/');
  return plan === '' ? undefined : { plan, attempt, kind };
}
