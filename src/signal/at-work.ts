/** Tells from a Node which plan works on it: by a claim, which other dialects respect, or by a signal that has not ended. */
import {
  annotated,
  type KubeObject,
  kubeletVersionOf,
  type Node,
  withoutAnnotations,
} from '../kube/resources.ts';
import { decodeSignal, type SignalData } from './annotations.ts';
import { AGENT_ANNOTATION, ATTEMPT_LABEL, isFinal, SIGNAL_VERSION_ANNOTATION } from './names.ts';

/** Written in one step with the version of the Node that was observed: so two dialects never start on a Node at once. */
const CLAIM_ANNOTATION = 'upgrade.refit.dev/claimed-by';

/** How a plan claims: `<dialect>/<namespace>/<name>/<uid>`. */
export function claimOf(
  dialect: string,
  { metadata: { namespace = '', name, uid = '' } }: KubeObject,
): string {
  return `${dialect}/${namespace}/${name}/${uid}`;
}

export function claimOn({ metadata }: KubeObject): string | undefined {
  // One that is empty is nobody's.
  return metadata.annotations?.[CLAIM_ANNOTATION] || undefined;
}

/** For people; undefined if no plan but this one, or a deleted one that it replaces, claims the node. */
export function otherClaimantOn(
  node: KubeObject,
  { metadata: { namespace = '', name, uid } }: KubeObject,
) {
  const claim = claimOn(node);
  const whose = claim?.split('/').slice(0, -1) ?? [];
  const isOwn =
    claim?.endsWith(`/${uid}`) === true || whose.slice(1).join('/') === `${namespace}/${name}`;
  return claim === undefined || isOwn ? undefined : `plan ${whose.filter(Boolean).join('/')}`;
}

/** True if the claim names another plan than `own`. A deleted plan that `own` replaces, of the same name, is not another one. */
export function isClaimOfOther(claim: string | undefined, own: string): boolean {
  if (claim === undefined) return false;
  const [, namespace, name, uid] = own.split('/');
  const [, ofNamespace, ofName, ofUid] = claim.split('/');
  return ofUid !== uid && (ofNamespace !== namespace || ofName !== name);
}

export function withClaim(node: Node, claim: string): Node {
  return claimOn(node) === claim ? node : annotated(node, { [CLAIM_ANNOTATION]: claim });
}

/** The same node if the claim is not on it. */
export function withoutClaim(node: Node, claim: string): Node {
  return claimOn(node) === claim ? withoutAnnotations(node, CLAIM_ANNOTATION) : node;
}

/** True if a plan that works by signals may have the Node as a target: other Nodes need no claim. */
export function mayBeSignalled(node: Node): boolean {
  const { annotations = {} } = node.metadata;
  const isKnown = SIGNAL_VERSION_ANNOTATION in annotations || AGENT_ANNOTATION in annotations;
  return isKnown || kubeletVersionOf(node)?.includes('+k0s') === true;
}

export function isOver({ status }: Pick<SignalData, 'status'>): boolean {
  return isFinal(status?.status);
}

/** The id of the plan that signalled the object and is not done there. */
export function signallerOf({ metadata: { annotations } }: KubeObject): string | undefined {
  const signal = decodeSignal(annotations);
  return signal && !isOver(signal) ? signal.planId : undefined;
}

/** True if a plan has the Node, other than by the claim `besides`: it will be unavailable. A signal counts that a leader sent: kubelets write annotations. */
export function isTaken(node: Node, besides?: string): boolean {
  const { labels = {} } = node.metadata;
  return (
    (claimOn(node) ?? besides) !== besides ||
    (signallerOf(node) !== undefined && ATTEMPT_LABEL in labels)
  );
}
