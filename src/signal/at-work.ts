/**
 * Finds out from a Node which plan works on it. A plan works on a Node if it has claimed the Node, or if its signal has
 * not ended. All dialects respect claims.
 */
import {
  annotated,
  type KubeObject,
  kubeletVersionOf,
  type Node,
  withoutAnnotations,
} from '../kube/resources.ts';
import { decodeSignal, type SignalData } from './annotations.ts';
import { AGENT_ANNOTATION, ATTEMPT_LABEL, isFinal, SIGNAL_VERSION_ANNOTATION } from './names.ts';

/**
 * The annotation with the claim of a plan. A claim is written with the resourceVersion of the Node that was observed, so
 * that two dialects never start on a Node at the same time.
 */
const CLAIM_ANNOTATION = 'upgrade.refit.dev/claimed-by';

/** Returns the claim of a plan: `<dialect>/<namespace>/<name>/<uid>`. */
export function claimOf(
  dialect: string,
  { metadata: { namespace = '', name, uid = '' } }: KubeObject,
): string {
  return `${dialect}/${namespace}/${name}/${uid}`;
}

/** Returns the claim on the Node; undefined if no plan claims it. */
export function claimOn({ metadata }: KubeObject): string | undefined {
  // An empty claim belongs to no plan.
  return metadata.annotations?.[CLAIM_ANNOTATION] || undefined;
}

/**
 * Returns the name for people of the other plan that claims the node. Returns undefined if there is none. A deleted plan with the same
 * name, which this plan replaces, is not another plan.
 */
export function otherClaimantOn(
  node: KubeObject,
  { metadata: { namespace = '', name, uid } }: KubeObject,
): string | undefined {
  const claim = claimOn(node);
  if (claim === undefined || isClaimOfPlan(claim, { namespace, name, uid })) return undefined;
  return `plan ${claim.split('/').slice(0, -1).filter(Boolean).join('/')}`;
}

/**
 * Anybody with the rights of the kubelet can write a claim, so it may have more or fewer parts than a claim that Refit
 * wrote.
 */
function isClaimOfPlan(
  claim: string,
  {
    namespace,
    name,
    uid,
  }: Readonly<Record<'namespace' | 'name', string>> & { uid?: string | undefined },
): boolean {
  const parts = claim.split('/');
  const ofPlan = parts.slice(1, -1).join('/');
  return parts.at(-1) === uid || ofPlan === `${namespace}/${name}`;
}

/**
 * Returns true if the claim names another plan than `own`. A deleted plan with the same name, which `own` replaces, is
 * not another plan.
 */
export function isClaimOfOther(claim: string | undefined, own: string): boolean {
  if (claim === undefined) return false;
  const [, namespace = '', name = '', uid] = own.split('/');
  return !isClaimOfPlan(claim, { namespace, name, uid });
}

/** Returns the node with the claim. Returns the same object if the node already has the claim. */
export function withClaim(node: Node, claim: string): Node {
  return claimOn(node) === claim ? node : annotated(node, { [CLAIM_ANNOTATION]: claim });
}

/** Returns the node without the claim. Returns the same object if the node does not have the claim. */
export function withoutClaim(node: Node, claim: string): Node {
  return claimOn(node) === claim ? withoutAnnotations(node, CLAIM_ANNOTATION) : node;
}

/** Returns true if a plan that works by signals may have the Node as a target. Other Nodes need no claim. */
export function mayBeSignalled(node: Node): boolean {
  const { annotations = {} } = node.metadata;
  const isKnown = SIGNAL_VERSION_ANNOTATION in annotations || AGENT_ANNOTATION in annotations;
  return isKnown || kubeletVersionOf(node)?.includes('+k0s') === true;
}

/** Returns true if the signal has a final status. */
export function isOver({ status }: Pick<SignalData, 'status'>): boolean {
  return isFinal(status?.status);
}

/** Returns the id of the plan that signalled the object, as long as the signal has not ended. */
export function signallerOf({ metadata: { annotations } }: KubeObject): string | undefined {
  const signal = decodeSignal(annotations);
  return signal && !isOver(signal) ? signal.planId : undefined;
}

/**
 * Returns true if a plan works on the Node, so that the Node is or will be unavailable. A claim that equals `besides` is ignored. A signal
 * counts only with the label of a leader, because kubelets can write annotations.
 */
export function isTaken(node: Node, besides?: string): boolean {
  const { labels = {} } = node.metadata;
  return (
    (claimOn(node) ?? besides) !== besides ||
    (ATTEMPT_LABEL in labels && signallerOf(node) !== undefined)
  );
}
