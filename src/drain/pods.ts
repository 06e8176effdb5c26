/** Owns which pods of a node a drain evicts, which it leaves, which it waits for, and which it refuses to touch. */
import { keyOf } from '../kube/object-key.ts';
import type { OwnerReference, Pod } from '../kube/types.ts';

/** Marks the image in the API of a pod that the kubelet runs from a file: it cannot be evicted. */
const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';

/** `reason` completes the sentence that begins with the pod's name. */
export type PodVerdict =
  | { readonly kind: 'evict' }
  /** It is on its way out: waited for, and not evicted again. */
  | { readonly kind: 'ending' }
  | { readonly kind: 'left'; readonly reason: string }
  | { readonly kind: 'refused'; readonly reason: string };

export interface RefusedPod {
  /** `namespace/name`. */
  readonly pod: string;
  readonly reason: string;
}

/** The pods of one node; those that are left appear nowhere. */
export interface SortedPods {
  readonly evict: readonly Pod[];
  readonly ending: readonly Pod[];
  readonly refused: readonly RefusedPod[];
}

/** Tells whether the DaemonSet that controls the pod is gone, so that nobody will create the pod anew. */
export type OrphanedCheck = (pod: Pod) => boolean;

/**
 * As `kubectl drain` judges, but for pods that have finished: kubectl deletes them. They serve nobody and hold nothing
 * that the node needs, while their logs and results would be lost; the node comes back, so they stay.
 */
export function judgePod(pod: Pod, options: DrainOptions, isOrphaned: OrphanedCheck): PodVerdict {
  if (pod.metadata.annotations?.[MIRROR_ANNOTATION] !== undefined) return left('is run by the kubelet from a file');
  if (isFinished(pod)) return left('has finished');
  const orphaned = isDaemonPod(pod) && isOrphaned(pod);
  if (isDaemonPod(pod) && !orphaned) return left('belongs to a DaemonSet');
  if (pod.metadata.deletionTimestamp !== undefined) return { kind: 'ending' };
  if (options.localData === 'refuse' && hasLocalData(pod))
    return refused('has data in an emptyDir volume, which would be lost');
  if (options.unmanagedPods === 'refuse' && orphaned)
    return refused('belongs to a DaemonSet that is gone, so nobody would create it anew');
  if (options.unmanagedPods === 'refuse' && controllerOf(pod) === undefined)
    return refused('has no controller, so nobody would create it anew');
  return { kind: 'evict' };
}

export function sortPods(pods: readonly Pod[], options: DrainOptions, isOrphaned: OrphanedCheck): SortedPods {
  const judged = pods.map((pod) => ({ pod, verdict: judgePod(pod, options, isOrphaned) }));
  const those = (kind: PodVerdict['kind']): Pod[] =>
    judged.filter(({ verdict }) => verdict.kind === kind).map(({ pod }) => pod);
  return {
    evict: those('evict'),
    ending: those('ending'),
    refused: judged.flatMap(({ pod, verdict }) =>
      verdict.kind === 'refused' ? [{ pod: keyOf(pod), reason: verdict.reason }] : [],
    ),
  };
}

/** Who would create the pod anew. */
export function controllerOf({ metadata }: Pod): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true);
}

export function isDaemonPod(pod: Pod): boolean {
  const { kind, apiVersion = '' } = controllerOf(pod) ?? {};
  return kind === 'DaemonSet' && apiVersion.startsWith('apps/');
}

function isFinished({ status }: Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}

function hasLocalData({ spec }: Pod): boolean {
  return spec?.volumes?.some(({ emptyDir }) => emptyDir !== undefined) ?? false;
}

function left(reason: string): PodVerdict {
  return { kind: 'left', reason };
}

function refused(reason: string): PodVerdict {
  return { kind: 'refused', reason };
}

export interface DrainOptions {
  /** What happens to pods with an `emptyDir` volume, whose content is lost with the pod. */
  readonly localData: 'evict' | 'refuse';
  /** What happens to pods without a controller, which nobody creates anew. */
  readonly unmanagedPods: 'evict' | 'refuse';
  /** Seconds that each pod gets to end; its own where absent. */
  readonly gracePeriodSeconds?: number;
}

/** As k0s drains: everything goes, in its own time. */
export const DEFAULT_DRAIN: DrainOptions = { localData: 'evict', unmanagedPods: 'evict' };
