/** Decides for each pod of a node whether a drain evicts it, leaves it, waits for it, or refuses to evict it. */
import type { KubeClient } from '../kube/client.ts';
import { daemonSets, keyOf, type OwnerReference, type Pod } from '../kube/resources.ts';
import { parseLabelSelector } from '../kube/selectors.ts';
import { isNotFound } from '../kube/status-error.ts';
import { defined } from '../util/json.ts';
import { listedOneByOne } from '../util/phrases.ts';
import { isHookOfItsNode, isOwnPod } from './own-pods.ts';
import type { PodRule, PodRules } from './pod-rules.ts';

/**
 * The kubelet sets this annotation on the mirror pod of a static pod, which it runs from a file and which cannot be
 * evicted.
 */
const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';

/**
 * The decision about a pod. `ending`: the pod is already terminating · `awaited`: the drain waits until the pod
 * completes · `left`: the pod stays on the node · `refused`: the drain must not evict the pod; the text follows the
 * name of the pod in a sentence.
 */
export type PodVerdict = 'evict' | 'ending' | 'awaited' | 'left' | { readonly refused: PodRefusal };

/** Where somebody can allow what the options of a drain forbid. */
export interface DrainFields {
  /** The object that has the fields, as it is called in a sentence. */
  readonly of: string;
  /** The field with the value that lets pods with local data go. */
  readonly localData: string;
  /** The field with the value that lets pods without a controller go. */
  readonly unmanagedPods: string;
}

const FIELDS_OF_POLICY: DrainFields = {
  of: 'an UpgradePolicy',
  localData: 'spec.drain.deleteEmptyDirData: true',
  unmanagedPods: 'spec.drain.force: true',
};

/** Maps each reason for which a drain refuses to evict a pod to the option that allows it. */
const REFUSED_BY = {
  'has data in an emptyDir volume, which would be lost': 'localData',
  'belongs to a DaemonSet that is gone, so nothing would create it again': 'unmanagedPods',
  'has no controller, so nothing would create it again': 'unmanagedPods',
} as const satisfies Readonly<Record<string, keyof DrainOptions & keyof DrainFields>>;

type PodRefusal = keyof typeof REFUSED_BY;

export interface RefusedPod {
  /** The name of the pod is `namespace/name`. */
  readonly pod: string;
  readonly reason: PodRefusal;
}

/** Returns who has to set which fields, so that a drain with these options evicts all these pods: `a Plan has b: true`. */
export function liftOf(
  refused: readonly RefusedPod[],
  { fields = FIELDS_OF_POLICY }: Pick<DrainOptions, 'fields'>,
): { readonly of: string; readonly settings: string } {
  const settings = new Set(refused.map(({ reason }) => fields[REFUSED_BY[reason]]));
  return { of: fields.of, settings: [...settings].join(' and ') };
}

/** Returns a sentence for each pod, or for the first `most`, and then the fields that would allow the evictions. */
export function describeRefusedPods(
  refused: readonly RefusedPod[],
  options: Pick<DrainOptions, 'fields'>,
  most = Number.POSITIVE_INFINITY,
): string {
  const sentences = refused.map(({ pod, reason }) => `${pod} ${reason}`);
  const { of, settings } = liftOf(refused, options);
  return `${listedOneByOne(sentences, most)}; ${settings} of ${of} allows this`;
}

/**
 * The facts that are needed for the decision about a pod, besides the pod itself: whether its DaemonSet no longer
 * exists, and which rule applies to the pod.
 */
export interface PodFacts {
  readonly isOrphaned: DaemonSets['isOrphaned'];
  readonly ruleFor: PodRules['ruleFor'];
}

export interface SortedPods {
  readonly evict: readonly Pod[];
  readonly ending: readonly Pod[];
  readonly awaited: readonly Pod[];
  readonly refused: readonly RefusedPod[];
}

/**
 * Decides in the same way as `kubectl drain`, with two differences. Completed pods are not deleted, so that their logs
 * stay, because the node returns to service. The pods of Refit itself are not evicted.
 */
export function judgePod(
  pod: Pod,
  options: DrainOptions,
  { isOrphaned, ruleFor }: PodFacts,
): PodVerdict {
  if (isMirrorPod(pod) || isFinished(pod)) return 'left';
  const orphaned = isDaemonPod(pod) && isOrphaned(pod);
  if (isDaemonPod(pod) && !orphaned) return 'left';
  const isOurs = isOwnPod(pod) || (isJobPod(pod) && isHookOfItsNode(pod));
  if (isOurs || !isSelected(pod, options)) return 'left';
  const action = ruleFor(pod)?.action ?? (mustComplete(pod, options) ? 'wait' : 'evict');
  if (action === 'leave') return 'left';
  if (pod.metadata.deletionTimestamp !== undefined) return 'ending';
  if (action === 'wait') return 'awaited';
  if (options.localData === 'refuse' && hasLocalData(pod))
    return { refused: 'has data in an emptyDir volume, which would be lost' };
  if (options.unmanagedPods === 'refuse' && orphaned)
    return { refused: 'belongs to a DaemonSet that is gone, so nothing would create it again' };
  if (options.unmanagedPods === 'refuse' && controllerOf(pod) === undefined)
    return { refused: 'has no controller, so nothing would create it again' };
  return 'evict';
}

/** Returns true if the pod is the mirror pod of a static pod. */
export function isMirrorPod({ metadata }: Pod): boolean {
  return metadata.annotations?.[MIRROR_ANNOTATION] !== undefined;
}

/** Returns true if no container of the pod runs any more. */
export function isFinished({ status }: Pod): boolean {
  return ['Succeeded', 'Failed'].includes(status?.phase ?? '');
}

function isSelected(pod: Pod, { podSelector }: DrainOptions): boolean {
  return podSelector === undefined || parseLabelSelector(podSelector)(pod);
}

function mustComplete(pod: Pod, { jobsWaitMs = 0 }: DrainOptions): boolean {
  return jobsWaitMs > 0 && isJobPod(pod);
}

function hasLocalData({ spec }: Pod): boolean {
  return spec?.volumes?.some(({ emptyDir }) => emptyDir !== undefined) === true;
}

/** Groups the pods by what a drain does with them. Pods that the drain leaves on the node are in no group. */
export function sortPods(pods: readonly Pod[], options: DrainOptions, facts: PodFacts): SortedPods {
  const judged = pods.map((pod) => ({ pod, verdict: judgePod(pod, options, facts) }));
  const podsWith = (wanted: PodVerdict) =>
    judged.flatMap(({ pod, verdict }) => (verdict === wanted ? pod : []));
  return {
    evict: podsWith('evict'),
    ending: podsWith('ending'),
    awaited: podsWith('awaited'),
    refused: judged.flatMap(({ pod, verdict }) =>
      typeof verdict === 'object' ? [{ pod: keyOf(pod), reason: verdict.refused }] : [],
    ),
  };
}

/** Returns the owner that controls the pod; undefined if no owner controls it. */
export function controllerOf({ metadata }: Pod): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true);
}

/** Returns true if a DaemonSet controls the pod. */
export function isDaemonPod(pod: Pod): boolean {
  const { kind, apiVersion = '' } = controllerOf(pod) ?? {};
  return kind === 'DaemonSet' && apiVersion.startsWith('apps/');
}

/** Returns true if a Job controls the pod. */
export function isJobPod(pod: Pod): boolean {
  const { kind, apiVersion = '' } = controllerOf(pod) ?? {};
  return kind === 'Job' && apiVersion.startsWith('batch/');
}

export interface DrainOptions {
  /** Says what happens to pods with an `emptyDir` volume, whose content is lost with the pod. */
  readonly localData: 'evict' | 'refuse';
  /** Says what happens to pods without a controller, which nobody creates again. */
  readonly unmanagedPods: 'evict' | 'refuse';
  /** The fields that set `localData` and `unmanagedPods`, for messages. If it is absent, an UpgradePolicy sets them. */
  readonly fields?: DrainFields;
  /** The grace period of each pod in seconds. If it is absent, the pod's own grace period applies. */
  readonly gracePeriodSeconds?: number;
  /** A label selector: pods that do not match it are left. If it is absent, all pods are selected. */
  readonly podSelector?: string;
  /**
   * True if pods are deleted instead of evicted, whatever their budgets say. Only the work on a node may do so, and Refit's own
   * drains never do.
   */
  readonly deletes?: boolean;
  /** The first rule that selects a pod applies to it. */
  readonly podRules?: readonly PodRule[];
  /**
   * True if pods are also evicted in the order of their priority: among the pods with the same `turn`, a pod is evicted
   * only after all pods with a lower priority are gone.
   */
  readonly byPriority?: boolean;
  /**
   * The drain does not evict the pods of Jobs for this many milliseconds, and waits until they complete. If a rule
   * selects such a pod, the rule applies instead. If the field is absent, the drain does not wait.
   */
  readonly jobsWaitMs?: number;
  /**
   * The drain evicts no pod for this many milliseconds, so that load balancers stop sending traffic to the node. If it
   * is absent, the drain does not wait.
   */
  readonly graceMs?: number;
  /**
   * After the last pod is gone, the drain waits at most this many milliseconds until the volumes of the evicted pods are
   * detached. If it is absent, the drain does not wait.
   */
  readonly detachMs?: number;
  /**
   * True if the drain uses EvictionRequests to request the evictions from Kubernetes, provided that the API server
   * serves EvictionRequests.
   */
  readonly evictionRequests?: boolean;
}

/**
 * Returns the options that always come from the policy, even if other options, such as those of a Rancher Plan, replace
 * the rest.
 */
export function rulesAmong(options: DrainOptions) {
  const { podRules, byPriority, jobsWaitMs, graceMs, detachMs, evictionRequests } = options;
  return defined({ podRules, byPriority, jobsWaitMs, graceMs, detachMs, evictionRequests });
}

/** The options of a drain as k0s does it: every pod is evicted with its own grace period. */
export const DEFAULT_DRAIN: DrainOptions = { localData: 'evict', unmanagedPods: 'evict' };

export interface DaemonSets {
  /**
   * Requests the DaemonSets of these pods, except those that are already known. Rejects only when `abort` aborts. Every
   * rejected promise has a handler.
   */
  readonly learn: (pods: readonly Pod[], abort: AbortSignal) => Promise<void>;
  /** Returns true if the DaemonSet of the pod is known to be gone. Returns false if `learn` was not called for it. */
  readonly isOrphaned: (pod: Pod) => boolean;
}

/** Finds out which DaemonSets still exist. Each DaemonSet is requested once. */
export function daemonSetsOf(client: KubeClient): DaemonSets {
  const asked = new Map<string, Promise<boolean>>();
  const gone = new Map<string, boolean>();
  return {
    async learn(found, abort) {
      for (const pod of found.filter(isDaemonPod))
        void asked.getOrInsertComputed(setOf(pod), async () => await isGone(client, pod, abort));
      await Promise.all([...asked].map(async ([key, answer]) => gone.set(key, await answer)));
    },
    isOrphaned: (pod) => gone.get(setOf(pod)) ?? false,
  };
}

/**
 * Returns false if the API server does not answer, or refuses the request, as it does for kubelets. In that case the
 * pod stays on the node, like other pods of DaemonSets.
 */
async function isGone(client: KubeClient, pod: Pod, abort: AbortSignal): Promise<boolean> {
  const name = controllerOf(pod)?.name ?? '';
  try {
    await client.get(daemonSets, name, { namespace: pod.metadata.namespace, abort });
    return false;
  } catch (error) {
    abort.throwIfAborted();
    // The DaemonSet is gone only if the error names it. Otherwise the kind itself was not found.
    return isNotFound(error) && error.status.details?.name === name;
  }
}

function setOf(pod: Pod): string {
  return keyOf({
    metadata: { name: controllerOf(pod)?.name ?? '', namespace: pod.metadata.namespace ?? '' },
  });
}
