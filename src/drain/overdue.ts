/** Owns noticing the pods that were told to end and have not: a kubelet that is gone, or a finalizer that nobody removes. */
import { keyOf } from '../kube/object-key.ts';
import type { Pod } from '../kube/types.ts';

/** Milliseconds past its time after which a pod is worth mentioning: kubelets need some to tidy up, and clocks differ. */
const TOLERANCE_MS = 30_000;

export interface Overdue {
  /** For people; absent where every pod still has time. */
  readonly text?: string;
  /** Milliseconds until another pod is overdue. */
  readonly nextInMs?: number;
}

/** Of pods with a `deletionTimestamp`, which is when their grace period ends. `now` in milliseconds since the Unix epoch. */
export function findOverdue(ending: readonly Pod[], now: number): Overdue {
  const waits = ending.map((pod) => ({
    pod,
    ms: Date.parse(pod.metadata.deletionTimestamp ?? '') + TOLERANCE_MS - now,
  }));
  const late = waits.filter(({ ms }) => ms <= 0).map(({ pod }) => describe(pod));
  const rest = waits.filter(({ ms }) => ms > 0).map(({ ms }) => ms);
  return {
    ...(late.length === 0 ? {} : { text: late.toSorted().join('; ') }),
    ...(rest.length === 0 ? {} : { nextInMs: Math.min(...rest) }),
  };
}

function describe(pod: Pod): string {
  const { deletionTimestamp, finalizers = [] } = pod.metadata;
  const why = finalizers.length === 0 ? 'the kubelet has not reported its end' : `held by ${finalizers.join(', ')}`;
  return `${keyOf(pod)} was to end by ${deletionTimestamp} (${why})`;
}
