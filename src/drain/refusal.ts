/** Owns what it means that an eviction was not carried out: who stands against it, and what people are told. */

import { StatusError, TransportError } from '../kube/status-error.ts';
import type { Pod } from '../kube/types.ts';
import { messageOf } from '../util/errors.ts';

export interface EvictionRefusal {
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
export function refusalOf(thrown: unknown, pod: Pod): EvictionRefusal {
  const waitMs = thrown instanceof StatusError ? (thrown.retryAfterMs ?? 0) : 0;
  const { name, namespace = '', uid } = pod.metadata;
  const [, budget, matter] = BUDGET_CAUSE.exec(messageOfCause(thrown, 'DisruptionBudget') ?? '') ?? [];
  if (budget !== undefined) {
    const key = `${namespace}/${budget}`;
    const describe = (pods: string): string => `PodDisruptionBudget ${key} holds ${pods}: it ${matter}`;
    return { line: `budget ${key}`, waitMs, describe };
  }
  // The watch is about to tell that this very pod is gone; another may have its name.
  if (isPastPod(thrown)) return { line: `pod ${uid}`, waitMs, describe: undefined };
  if (messageOfCause(thrown, 'NamespaceTerminating') !== undefined) {
    const describe = (pods: string): string => `namespace ${namespace} is being deleted, and its pods with it: ${pods}`;
    return { line: `namespace ${namespace}`, waitMs, describe };
  }
  const message = messageOf(thrown);
  if (isTrouble(thrown))
    return {
      line: 'server',
      waitMs,
      describe: (pods) => `the eviction of ${pods} waits for the API server: ${message}`,
    };
  // What differs in nothing but the pod's name, which API servers quote, has one reason.
  const line = `refusal ${message.replaceAll(`"${name}"`, '')}`;
  return { line, waitMs, describe: (pods) => `the eviction of ${pods} is refused: ${message}` };
}

function messageOfCause(thrown: unknown, reason: string): string | undefined {
  if (!(thrown instanceof StatusError)) return undefined;
  return thrown.status.details?.causes?.find((cause) => cause.reason === reason)?.message;
}

function isPastPod(thrown: unknown): boolean {
  return thrown instanceof StatusError && (thrown.code === 404 || thrown.code === 409);
}

/** No answer, or one that says nothing about the pod: overload, or a conflict that the server could not settle in time. */
function isTrouble(thrown: unknown): boolean {
  return thrown instanceof TransportError || (thrown instanceof StatusError && [429, 503, 504].includes(thrown.code));
}
