/**
 * Sets and removes what Refit writes to a Node: cordons and taints, each with its owner, and the label for load
 * balancers.
 */
import { annotated, managersOf, type Node, withoutAnnotations } from '../kube/resources.ts';

/**
 * Returns the owner of Refit's cordon; undefined if the node has no cordon of Refit. If somebody else uncordons the
 * node, the annotation stays and must be removed. Otherwise Refit would treat a later cordon of a person as its own.
 */
export function cordonOwner({ metadata }: Node): string | undefined {
  return metadata.annotations?.[CORDON_ANNOTATION];
}

/**
 * Returns true if the annotation names an owner, but the node is not cordoned or somebody else cordoned it. The
 * function reads `managedFields`, which the caches of informers omit.
 */
export function isMarkStale(node: Node): boolean {
  const isOthers = managersOf(node.metadata, 'unschedulable').some(
    (manager) => !manager.startsWith('refit'),
  );
  return cordonOwner(node) !== undefined && (node.spec?.unschedulable !== true || isOthers);
}

/** Returns the node with a cordon of `owner`. Returns the same object if the node is already cordoned by anyone. */
export function withCordon(node: Node, owner: string): Node {
  if (node.spec?.unschedulable) return node;
  return {
    ...annotated(node, { [CORDON_ANNOTATION]: owner }),
    spec: { ...node.spec, unschedulable: true },
  };
}

/**
 * Returns the node without Refit's cordon and the annotation of that cordon, and without Refit's label for load
 * balancers. Returns the same object if the node has neither the cordon nor the label.
 */
export function withoutCordon(cordoned: Node): Node {
  const node = withoutExclusion(cordoned);
  if (cordonOwner(node) === undefined) return node;
  const { unschedulable: _unschedulable, ...spec } = node.spec ?? {};
  return { ...withoutAnnotations(node, CORDON_ANNOTATION), spec };
}

/** Returns the node without any cordon. Returns the same object if the node is not cordoned. */
export function withoutAnyCordon(node: Node): Node {
  if (node.spec?.unschedulable !== true) return withoutCordon(node);
  const { unschedulable: _cordon, ...spec } = node.spec;
  return { ...withoutCordon(node), spec };
}

/**
 * Returns who excluded the node from external load balancers: Refit, or somebody else, such as kubeadm on a node of the
 * control plane. Returns undefined if the node is not excluded.
 */
export function exclusionOf({ metadata: { labels } }: Node): 'ours' | 'others' | undefined {
  const value = labels?.[EXCLUSION_LABEL];
  if (value === undefined) return undefined;
  return value === OUR_EXCLUSION ? 'ours' : 'others';
}

/**
 * Returns the node with the label that excludes it from external load balancers. Returns the same object if the node
 * already has the label, or if Refit did not cordon the node. Refit removes the label together with its cordon, so it
 * sets the label only on nodes that it cordoned.
 */
export function withExclusion(node: Node): Node {
  if (cordonOwner(node) === undefined || exclusionOf(node) !== undefined) return node;
  const labels = { ...node.metadata.labels, [EXCLUSION_LABEL]: OUR_EXCLUSION };
  return { ...node, metadata: { ...node.metadata, labels } };
}

/** Returns the node without Refit's label. Returns the same object if the node has no label of Refit. */
function withoutExclusion(node: Node): Node {
  if (exclusionOf(node) !== 'ours') return node;
  const { [EXCLUSION_LABEL]: _label, ...labels } = node.metadata.labels ?? {};
  return { ...node, metadata: { ...node.metadata, labels } };
}

/**
 * Returns the rollout to which the taint belongs. Returns an empty text if the taint names no rollout, and undefined if
 * there is no taint.
 */
export function pendingOwner({ spec }: Node): string | undefined {
  const taint = spec?.taints?.find(isPending);
  return taint && (taint.value ?? '');
}

/**
 * Returns true if `owner` may remove the taint, because the taint belongs to `owner` or to nobody. Taints of earlier
 * versions of Refit have no owner, and no other code removes them.
 */
export function isPendingFor(found: string | undefined, owner: string): boolean {
  return found === owner || found === '';
}

/**
 * Returns the node with the taint. Returns the same object if the node already has this taint, even if the taint has
 * another owner, because a taint with the same key and effect may occur only once.
 */
export function withPendingTaint(node: Node, owner: string): Node {
  if (pendingOwner(node) !== undefined) return node;
  const taint = { ...PENDING_TAINT, value: owner };
  return { ...node, spec: { ...node.spec, taints: [...(node.spec?.taints ?? []), taint] } };
}

/** Returns the node without the taint. Returns the same object if it has no taint that `owner` may remove. */
export function withoutPendingTaint(node: Node, owner: string): Node {
  if (!isPendingFor(pendingOwner(node), owner)) return node;
  const { taints = [], ...spec } = node.spec ?? {};
  const others = taints.filter((taint) => !isPending(taint));
  return { ...node, spec: others.length === 0 ? spec : { ...spec, taints: others } };
}

function isPending({ key, effect }: { key: string; effect: string }): boolean {
  return key === PENDING_TAINT.key && effect === PENDING_TAINT.effect;
}

/** This annotation names the rollout that cordoned the node. A cordon without it is foreign and stays. */
export const CORDON_ANNOTATION = 'upgrade.refit.dev/cordoned-by';

/** Cloud providers send no traffic to a node with this label, whatever its value is. */
export const EXCLUSION_LABEL = 'node.kubernetes.io/exclude-from-external-load-balancers';

/** This value marks a label of Refit. A label with another value is foreign and stays. */
export const OUR_EXCLUSION = 'refit';

/** A soft taint keeps evicted pods away from nodes that are not upgraded yet. Its value names the rollout. */
export const PENDING_TAINT = {
  key: 'upgrade.refit.dev/pending',
  effect: 'PreferNoSchedule',
} as const;

export interface Owner {
  /**
   * The uid of the plan. If a node cordons itself, this field is the planId of the signal, because the node does not
   * know the uid. The planId may be any text.
   */
  readonly plan: string;
  readonly attempt: string;
  /** The kind of the plan, by which a clean-up finds out whether the plan still exists. It is absent if a node has cordoned itself. */
  readonly kind?: string | undefined;
}

/** Returns the owner as the text of an annotation or a taint. */
export function writeOwner({ plan, attempt, kind }: Owner): string {
  return kind === undefined ? `${plan}/${attempt}` : `${plan}/${attempt}/${kind}`;
}

/**
 * Returns the owner that `writeOwner` wrote; undefined if the text names no plan. It reads from the end, because only
 * the plan may contain slashes.
 */
export function readOwner(text: string): Owner | undefined {
  const words = text.split('/');
  // Every kind of Kubernetes matches this pattern. Attempts never match it, because they are times.
  const namesKind = words.length > 2 && /^[A-Z][A-Za-z0-9]*$/.test(words.at(-1) ?? '');
  const kind = namesKind ? words.pop() : undefined;
  const attempt = words.pop() ?? '';
  const plan = words.join('/');
  return plan === '' ? undefined : { plan, attempt, kind };
}
