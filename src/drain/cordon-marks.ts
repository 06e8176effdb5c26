/** Cordons and taints of Refit on a Node, each with its owner. */
import { annotated, managersOf, type Node, withoutAnnotations } from '../kube/resources.ts';

/** Set also after somebody else uncordoned the node: a mark that stays would claim a later cordon of a person. */
export function cordonOwner({ metadata }: Node): string | undefined {
  return metadata.annotations?.[CORDON_ANNOTATION];
}

/** True for our mark beside no cordon, or one that another set, by what the API server keeps. Caches leave that out. */
export function isMarkStale(node: Node): boolean {
  const isOthers = managersOf(node.metadata, 'unschedulable').some(
    (manager) => !manager.startsWith('refit'),
  );
  return cordonOwner(node) !== undefined && (node.spec?.unschedulable !== true || isOthers);
}

/** Returns the same node when it is cordoned already, by anyone. */
export function withCordon(node: Node, owner: string): Node {
  if (node.spec?.unschedulable) return node;
  return {
    ...annotated(node, { [CORDON_ANNOTATION]: owner }),
    spec: { ...node.spec, unschedulable: true },
  };
}

/** Removes Refit's cordon with its annotation; returns the same node when there is none. */
export function withoutCordon(node: Node): Node {
  if (cordonOwner(node) === undefined) return node;
  const { unschedulable: _unschedulable, ...spec } = node.spec ?? {};
  return { ...withoutAnnotations(node, CORDON_ANNOTATION), spec };
}

/** Removes any cordon; returns the same node when there is none. */
export function withoutAnyCordon(node: Node): Node {
  if (node.spec?.unschedulable !== true) return withoutCordon(node);
  const { unschedulable: _cordon, ...spec } = node.spec;
  return { ...withoutCordon(node), spec };
}

/** The rollout that the taint is for; empty when it names none, undefined without the taint. */
export function pendingOwner({ spec }: Node): string | undefined {
  const taint = spec?.taints?.find(isPending);
  return taint && (taint.value ?? '');
}

/** True for the taint of `owner`, and for one without an owner, from earlier versions, which nobody else removes. */
export function isPendingFor(found: string | undefined, owner: string): boolean {
  return found === owner || found === '';
}

/** Returns the same node when it has the taint already, for any owner: a node has one taint of a key and effect. */
export function withPendingTaint(node: Node, owner: string): Node {
  if (pendingOwner(node) !== undefined) return node;
  const taint = { ...PENDING_TAINT, value: owner };
  return { ...node, spec: { ...node.spec, taints: [...(node.spec?.taints ?? []), taint] } };
}

/** Returns the same node when it has no taint that `owner` may remove. */
export function withoutPendingTaint(node: Node, owner: string): Node {
  if (!isPendingFor(pendingOwner(node), owner)) return node;
  const { taints = [], ...spec } = node.spec ?? {};
  const others = taints.filter((taint) => !isPending(taint));
  return { ...node, spec: others.length === 0 ? spec : { ...spec, taints: others } };
}

function isPending({ key, effect }: { key: string; effect: string }): boolean {
  return key === PENDING_TAINT.key && effect === PENDING_TAINT.effect;
}

/** Names the rollout that cordoned the node; a cordon without it is foreign and stays. */
export const CORDON_ANNOTATION = 'upgrade.refit.dev/cordoned-by';

/** A soft taint on nodes that are not upgraded yet: keeps evicted pods away from them. Its value names the rollout. */
export const PENDING_TAINT = {
  key: 'upgrade.refit.dev/pending',
  effect: 'PreferNoSchedule',
} as const;

export interface Owner {
  /** Uid of the plan. A node that cordons itself knows only the signal's planId, which may be any text. */
  readonly plan: string;
  readonly attempt: string;
  /** Kind of the plan, needed to find out that the plan is gone. Absent when a node cordons itself. */
  readonly kind?: string | undefined;
}

export function writeOwner({ plan, attempt, kind }: Owner): string {
  return kind === undefined ? `${plan}/${attempt}` : `${plan}/${attempt}/${kind}`;
}

/** Reads from the end: only the plan may contain slashes. */
export function readOwner(text: string): Owner | undefined {
  const words = text.split('/');
  // Every kind of Kubernetes is such a word, and no attempt is, as attempts are times.
  const namesKind = words.length > 2 && /^[A-Z][A-Za-z0-9]*$/.test(words.at(-1) ?? '');
  const kind = namesKind ? words.pop() : undefined;
  const attempt = words.pop() ?? '';
  const plan = words.join('/');
  return plan === '' ? undefined : { plan, attempt, kind };
}
