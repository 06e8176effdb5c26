/** Sorts the pods of a node: those that a drain evicts, leaves, waits for, or refuses to evict. */
import type { KubeClient } from '../kube/client.ts';
import { daemonSets, keyOf, type OwnerReference, type Pod } from '../kube/resources.ts';
import { parseLabelSelector } from '../kube/selectors.ts';
import { isNotFound } from '../kube/status-error.ts';
import { listedOneByOne } from '../util/phrases.ts';
import { isOwnPod } from './own-pods.ts';
import type { PodRule, podRulesOf } from './pod-rules.ts';

/** Marks a static pod, which the kubelet runs from a file: it cannot be evicted. */
const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';

/** A pod that is `ending` terminates, and one `awaited` ends by itself. Why one is refused completes the sentence that begins with its name. */
export type PodVerdict = 'evict' | 'ending' | 'awaited' | 'left' | { readonly refused: PodRefusal };

/** Why a drain refuses to evict a pod, each with the field of an UpgradePolicy whose value lifts that. */
const LIFTS = {
  'has data in an emptyDir volume, which would be lost': 'spec.drain.deleteEmptyDirData: true',
  'belongs to a DaemonSet that is gone, so nobody would create it anew': 'spec.drain.force: true',
  'has no controller, so nobody would create it anew': 'spec.drain.force: true',
} as const satisfies Readonly<Record<string, string>>;

type PodRefusal = keyof typeof LIFTS;

export interface RefusedPod {
  /** `namespace/name`. */
  readonly pod: string;
  readonly reason: PodRefusal;
}

/** The fields, with their values, that let a drain evict all these pods. */
export function liftsOf(refused: readonly RefusedPod[]): string {
  return [...new Set(refused.map(({ reason }) => LIFTS[reason]))].join(' and ');
}

/** A sentence for each pod, or for the first `most`, and then what lifts their refusal. */
export function describeRefusedPods(
  refused: readonly RefusedPod[],
  most = Number.POSITIVE_INFINITY,
): string {
  const sentences = refused.map(({ pod, reason }) => `${pod} ${reason}`);
  return `${listedOneByOne(sentences, most)}; ${liftsOf(refused)} of an UpgradePolicy lifts this`;
}

/** What is known beside a pod itself. `isOrphaned`: its DaemonSet is gone. */
interface PodFacts {
  readonly isOrphaned: (pod: Pod) => boolean;
  readonly ruleFor: ReturnType<typeof podRulesOf>['ruleFor'];
}

/** As `kubectl drain`, but finished pods stay with their logs, since the node comes back, and so do Refit's own. */
export function judgePod(
  pod: Pod,
  options: DrainOptions,
  { isOrphaned, ruleFor }: PodFacts,
): PodVerdict {
  const isFinished = ['Succeeded', 'Failed'].includes(pod.status?.phase ?? '');
  if (pod.metadata.annotations?.[MIRROR_ANNOTATION] !== undefined || isFinished) return 'left';
  const orphaned = isDaemonPod(pod) && isOrphaned(pod);
  if (isDaemonPod(pod) && !orphaned) return 'left';
  if (isOwnPod(pod) || !isSelected(pod, options)) return 'left';
  const action = ruleFor(pod)?.action;
  if (action === 'leave') return 'left';
  if (pod.metadata.deletionTimestamp !== undefined) return 'ending';
  if (action === 'wait') return 'awaited';
  if (options.localData === 'refuse' && hasLocalData(pod))
    return { refused: 'has data in an emptyDir volume, which would be lost' };
  if (options.unmanagedPods === 'refuse' && orphaned)
    return { refused: 'belongs to a DaemonSet that is gone, so nobody would create it anew' };
  if (options.unmanagedPods === 'refuse' && controllerOf(pod) === undefined)
    return { refused: 'has no controller, so nobody would create it anew' };
  return 'evict';
}

function isSelected(pod: Pod, { podSelector }: DrainOptions): boolean {
  return podSelector === undefined || parseLabelSelector(podSelector)(pod);
}

function hasLocalData({ spec }: Pod): boolean {
  return spec?.volumes?.some(({ emptyDir }) => emptyDir !== undefined) === true;
}

export function sortPods(pods: readonly Pod[], options: DrainOptions, facts: PodFacts) {
  const judged = pods.map((pod) => ({ pod, verdict: judgePod(pod, options, facts) }));
  const those = (wanted: PodVerdict) =>
    judged.flatMap(({ pod, verdict }) => (verdict === wanted ? pod : []));
  return {
    evict: those('evict'),
    ending: those('ending'),
    awaited: those('awaited'),
    refused: judged.flatMap(({ pod, verdict }) =>
      typeof verdict === 'object' ? [{ pod: keyOf(pod), reason: verdict.refused }] : [],
    ),
  };
}

export function controllerOf({ metadata }: Pod): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true);
}

export function isDaemonPod(pod: Pod): boolean {
  const { kind, apiVersion = '' } = controllerOf(pod) ?? {};
  return kind === 'DaemonSet' && apiVersion.startsWith('apps/');
}

export interface DrainOptions {
  /** What happens to pods with an `emptyDir` volume, whose content is lost with the pod. */
  readonly localData: 'evict' | 'refuse';
  /** What happens to pods without a controller, which nobody creates anew. */
  readonly unmanagedPods: 'evict' | 'refuse';
  /** Grace period of each pod in seconds; absent: the pod's own. */
  readonly gracePeriodSeconds?: number;
  /** Other pods are left; absent: all pods are selected. */
  readonly podSelector?: string;
  /** The first that selects a pod counts. */
  readonly podRules?: readonly PodRule[];
}

/** As k0s drains: every pod is evicted, with its own grace period. */
export const DEFAULT_DRAIN: DrainOptions = { localData: 'evict', unmanagedPods: 'evict' };

/** Caches each answer: one request for each DaemonSet. */
export function daemonSetsOf(client: KubeClient) {
  const asked = new Map<string, Promise<boolean>>();
  const gone = new Map<string, boolean>();
  return {
    /** Asks about DaemonSets that are not known yet. Rejects only when `abort` aborts; no rejection is left to end the process. */
    async learn(pods: readonly Pod[], abort: AbortSignal): Promise<void> {
      for (const pod of pods.filter(isDaemonPod))
        void asked.getOrInsertComputed(setOf(pod), async () => await isGone(client, pod, abort));
      await Promise.all([...asked].map(async ([key, answer]) => gone.set(key, await answer)));
    },
    /** False for an unknown DaemonSet. */
    isOrphaned: (pod: Pod) => gone.get(setOf(pod)) ?? false,
  };
}

/** No answer, or a refusal as for kubelets, counts as "it exists": then the pod stays, as pods of DaemonSets do. */
async function isGone(client: KubeClient, pod: Pod, abort: AbortSignal): Promise<boolean> {
  const name = controllerOf(pod)?.name ?? '';
  try {
    await client.get(daemonSets, name, { namespace: pod.metadata.namespace, abort });
    return false;
  } catch (error) {
    abort.throwIfAborted();
    // Without a name the kind was not found: the server has no DaemonSets.
    return isNotFound(error) && error.status.details?.name === name;
  }
}

function setOf(pod: Pod): string {
  return keyOf({
    metadata: { name: controllerOf(pod)?.name ?? '', namespace: pod.metadata.namespace ?? '' },
  });
}
