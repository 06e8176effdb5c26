/** Owns what it means that an eviction was not carried out: who stands against it, and what people are told. */

import { keyOf } from '../kube/object-key.ts';
import { StatusError, TransportError } from '../kube/status-error.ts';
import type { Pod } from '../kube/types.ts';
import { messageOf } from '../util/errors.ts';

export interface Refusal {
  /** Equal for pods that wait for the same: one of them asks for all. */
  readonly line: string;
  /** What people read, given the names of the pods; undefined where nothing is wrong. */
  readonly describe: ((pods: string) => string) | undefined;
  /** Milliseconds that the server asked to wait. */
  readonly waitMs: number;
}

/** The words of an API server's cause: the name of the budget, then what is the matter with it. */
const BUDGET_CAUSE = /^The disruption budget (\S+) (.*?)\.?$/;

/** Of whatever the eviction of `pod` threw. */
export function refusalOf(thrown: unknown, pod: Pod): Refusal {
  const waitMs = thrown instanceof StatusError ? (thrown.retryAfterMs ?? 0) : 0;
  const [, budget, matter] = BUDGET_CAUSE.exec(messageOfCause(thrown, 'DisruptionBudget') ?? '') ?? [];
  if (budget !== undefined) {
    const key = keyOf({ metadata: { name: budget, namespace: pod.metadata.namespace ?? '' } });
    return {
      line: `budget ${key}`,
      waitMs,
      describe: (pods) => `PodDisruptionBudget ${key} holds ${pods}: it ${matter}`,
    };
  }
  const own = { line: `pod ${pod.metadata.uid}`, waitMs };
  // The watch is about to tell that this very pod is gone; another may have its name.
  if (isPastPod(thrown)) return { ...own, describe: undefined };
  if (messageOfCause(thrown, 'NamespaceTerminating') !== undefined)
    return { ...own, describe: (pods) => `${pods} cannot be evicted while its namespace is being deleted` };
  if (isTrouble(thrown))
    return { line: 'server', waitMs, describe: (pods) => `${pods} wait for the API server: ${messageOf(thrown)}` };
  return { ...own, describe: (pods) => `${pods} cannot be evicted: ${messageOf(thrown)}` };
}

function messageOfCause(thrown: unknown, reason: string): string | undefined {
  if (!(thrown instanceof StatusError)) return undefined;
  return thrown.status.details?.causes?.find((cause) => cause.reason === reason)?.message ?? undefined;
}

function isPastPod(thrown: unknown): boolean {
  return thrown instanceof StatusError && (thrown.code === 404 || thrown.code === 409);
}

/** No answer, or one that says nothing about the pod: overload, a conflict that the server could not settle in time. */
function isTrouble(thrown: unknown): boolean {
  return thrown instanceof TransportError || (thrown instanceof StatusError && [429, 503, 504].includes(thrown.code));
}
