/** The sentences that say what blocks a drain: budgets, and pods that do not terminate. */
import { keyOf } from '../kube/object-key.ts';
import type { Pod } from '../kube/types.ts';

/** A node may have a hundred pods of one budget; a status line names this many. */
const NAMED = 5;
/** Milliseconds past its deletion time after which a pod is overdue: kubelets need time to clean up, and clocks differ. */
const TOLERANCE_MS = 30_000;

/** Names as `namespace/name`. */
export function nameSome(names: readonly string[]): string {
  const [shown, rest] = [names.toSorted().slice(0, NAMED), names.length - NAMED];
  return shown.join(', ') + (rest > 0 ? ` and ${rest} more` : '');
}

/** `budget` as `namespace/name`. */
export function blockedByBudget(budget: string, pods: string, reason: string): string {
  return `PodDisruptionBudget ${budget} blocks ${pods}: ${reason}`;
}

export interface OverduePods {
  /** For people; absent while every pod has time left. */
  readonly text?: string;
  /** Milliseconds until another pod is overdue. */
  readonly nextInMs?: number;
}

/** For terminating pods, whose `deletionTimestamp` is the end of their grace period. `now` in milliseconds since the Unix epoch. */
export function findOverdue(ending: readonly Pod[], now: number): OverduePods {
  const waits = ending.map((pod) => ({
    pod,
    ms: Date.parse(pod.metadata.deletionTimestamp ?? '') + TOLERANCE_MS - now,
  }));
  const late = waits.filter(({ ms }) => ms <= 0).map(({ pod }) => describeOverdue(pod));
  const rest = waits.filter(({ ms }) => ms > 0).map(({ ms }) => ms);
  return {
    ...(late.length === 0 ? {} : { text: late.toSorted().join('; ') }),
    ...(rest.length === 0 ? {} : { nextInMs: Math.min(...rest) }),
  };
}

function describeOverdue(pod: Pod): string {
  const { deletionTimestamp, finalizers = [] } = pod.metadata;
  const why = finalizers.length === 0 ? 'the kubelet has not reported its end' : `held by ${finalizers.join(', ')}`;
  return `${keyOf(pod)} was to end by ${deletionTimestamp} (${why})`;
}
