/** Finds out from the answer of the API server why an eviction was refused. */
import type { Pod } from '../kube/resources.ts';
import { StatusError, TransportError } from '../kube/status-error.ts';
import { messageOf } from '../util/errors.ts';
import { blockedByBudget } from './budgets.ts';

type Describe = (pods: string) => string;

export interface EvictionRefusal {
  /** A text that names the reason of the refusal. It is equal for pods that are refused for the same reason. */
  readonly line: string;
  /**
   * The message without the parts that differ in each answer. The progress shows a new message only if this text
   * changes.
   */
  readonly words: string;
  /**
   * A function that receives the names of the pods and returns the reason as a text for people; undefined if nothing is
   * wrong.
   */
  readonly describe: Describe | undefined;
  /** The milliseconds that the API server asks to wait, in its header Retry-After. */
  readonly waitMs: number;
}

/** The message of the cause has the name of the budget, and then the reason. */
const BUDGET_CAUSE = /^The disruption budget (\S+) (.*?)\.?$/;

/** Returns why the API server refused to evict the pod, or why there was no answer to the eviction. */
export function refusalOf(thrown: unknown, pod: Pod): EvictionRefusal {
  const waitMs = thrown instanceof StatusError ? (thrown.retryAfterMs ?? 0) : 0;
  const refused = (line: string, words: string, describe?: Describe) => ({
    line,
    words,
    waitMs,
    describe,
  });
  const { name, namespace = '', uid } = pod.metadata;
  const [, budget, matter = ''] =
    BUDGET_CAUSE.exec(messageOfCause(thrown, 'DisruptionBudget') ?? '') ?? [];
  const key = `${namespace}/${budget}`;
  if (budget !== undefined)
    return refused(`budget ${key}`, matter, (pods) => blockedByBudget(key, pods, `it ${matter}`));
  if (isPastPod(thrown)) return refused(`pod ${uid}`, '');
  const ending = (pods: string): string =>
    `namespace ${namespace} is being deleted, and its pods with it: ${pods}`;
  if (messageOfCause(thrown, 'NamespaceTerminating') !== undefined)
    return refused(`namespace ${namespace}`, '', ending);
  const message = messageOf(thrown);
  // Names of pods, ports, times and ids of requests differ in each message, but the reason is the same.
  const words = message
    .replaceAll(`"${name}"`, '')
    .replaceAll(/\S+/g, (word) => (/\d/.test(word) ? '#' : word));
  if (isTrouble(thrown))
    return refused(
      'server',
      words,
      (pods) => `the eviction of ${pods} waits for the API server: ${message}`,
    );
  return refused(
    `refusal ${words}`,
    words,
    (pods) => `the eviction of ${pods} is refused: ${message}`,
  );
}

/**
 * Returns true if no answer arrived, or if the answer is not about the pod, for example because of overload or a
 * timeout in the server.
 */
function isTrouble(thrown: unknown): boolean {
  if (thrown instanceof TransportError) return true;
  return thrown instanceof StatusError && [429, 503, 504].includes(thrown.code);
}

/**
 * Returns true if this pod no longer exists. The watch will report its deletion. Another pod may already have the same
 * name.
 */
function isPastPod(thrown: unknown): boolean {
  return thrown instanceof StatusError && (thrown.code === 404 || thrown.code === 409);
}

/** Returns the message of the cause with this reason; undefined if the server names no such cause. */
function messageOfCause(thrown: unknown, reason: string): string | undefined {
  if (!(thrown instanceof StatusError)) return undefined;
  return thrown.status.details?.causes?.find((cause) => cause.reason === reason)?.message;
}
