/** Evicts pods: all at once, but only one at a time of those refused for the same reason. */
import type { Reading } from '../kube/client.ts';
import { keyOf, type Pod } from '../kube/resources.ts';
import { StatusError, TransportError } from '../kube/status-error.ts';
import { backoffDelay, sleep } from '../util/clock.ts';
import { messageOf } from '../util/errors.ts';
import type { Tools } from '../util/tools.ts';
import { semaphore } from '../util/waits.ts';
import { blockedByBudget, nameSome } from './budgets.ts';
import type { DrainOptions } from './pods.ts';

export interface EvictionParts extends Tools, Reading {
  readonly options: DrainOptions;
  /** Called when `blockedBy` may have changed. */
  readonly onChange: () => void;
}

/** Milliseconds between two attempts after a refusal. */
const RETRY = { base: 1_000, cap: 10_000 };
/** Parallel requests: the hundred pods of a node need no hundred connections. */
const PARALLEL = 16;

/** Pods refused for the same reason. They take turns: one asks, and only after the pause. */
interface Line {
  readonly pods: Map<string, Pod>;
  readonly inTurn: ReturnType<typeof semaphore>;
  refusal: EvictionRefusal;
  /** In a row. */
  refusals: number;
  /** Monotonic milliseconds. */
  pauseUntil: number;
}

export function startEvictions({
  client,
  abort,
  options,
  onChange,
  clock,
  random,
  log,
}: EvictionParts) {
  const withOthers = semaphore(PARALLEL);
  const lines = new Map<string, Line>();
  const running = new Set<Promise<void>>();
  let wanted: ReadonlySet<string> = new Set();
  const join = (pod: Pod, refusal: EvictionRefusal): Line => {
    const opened: Line = {
      pods: new Map(),
      inTurn: semaphore(1),
      refusal,
      refusals: 0,
      pauseUntil: 0,
    };
    const line = lines.getOrInsert(refusal.line, opened);
    if (line.refusal.words !== refusal.words) line.refusal = refusal;
    line.pods.set(uidOf(pod), pod);
    // Parallel requests were refused for the same reason: count it once.
    if (clock.monotonic() < line.pauseUntil) return line;
    const pauseMs = Math.max(refusal.waitMs, backoffDelay(line.refusals++, { ...RETRY, random }));
    line.pauseUntil = clock.monotonic() + pauseMs;
    const fields = { problem: refusal.describe?.(keyOf(pod)), retryInMs: Math.round(pauseMs) };
    if (line.refusals === 1) log.info('eviction refused', fields);
    else log.debug('eviction still refused', fields);
    return line;
  };
  /** The line to wait in; undefined when the pod terminates, or need not go any more. */
  const ask = async (pod: Pod, previous?: Line): Promise<Line | undefined> => {
    if (abort.aborted || !wanted.has(uidOf(pod))) return undefined;
    const { name, namespace = '' } = pod.metadata;
    const { gracePeriodSeconds } = options;
    try {
      await client.evict({ name, namespace, uid: uidOf(pod) }, { abort, gracePeriodSeconds });
      log.info('pod evicted', { pod: keyOf(pod) });
      previous?.pods.delete(uidOf(pod));
      // What blocked it may be gone for the others too: reset their backoff.
      if (previous) previous.refusals = 0;
      return undefined;
    } catch (error) {
      previous?.pods.delete(uidOf(pod));
      return abort.aborted ? undefined : join(pod, refusalOf(error, pod));
    } finally {
      onChange();
    }
  };
  const askInTurn = async (pod: Pod, line: Line): Promise<Line | undefined> => {
    const pauseMs = line.pauseUntil - clock.monotonic();
    if (pauseMs > 0 && wanted.has(uidOf(pod)))
      await sleep(clock, pauseMs, abort).catch(() => undefined);
    return await ask(pod, line);
  };
  /** Never rejects: asks again after every answer, until the pod terminates. */
  const evict = async (pod: Pod): Promise<void> => {
    let line = await withOthers(async () => await ask(pod));
    while (line) {
      const previous = line;
      line = await previous.inTurn(async () => await askInTurn(pod, previous));
    }
  };
  return {
    /** Evicts exactly these pods: stops asking for others, and starts none twice. */
    want(pods: readonly Pod[]): void {
      const before = wanted;
      wanted = new Set(pods.map(uidOf));
      for (const [key, { pods: waiting }] of lines) {
        for (const uid of waiting.keys()) if (!wanted.has(uid)) waiting.delete(uid);
        if (waiting.size === 0) lines.delete(key);
      }
      for (const pod of pods) {
        if (before.has(uidOf(pod))) continue;
        const evicting = evict(pod).finally(() => running.delete(evicting));
        running.add(evicting);
      }
    },
    /** For people: which budgets block which pods, and what else refuses; undefined when nothing does. */
    blockedBy(): string | undefined {
      const texts = [...lines.values()]
        .filter(({ pods }) => pods.size > 0)
        .flatMap(
          ({ refusal, pods }) => refusal.describe?.(nameSome([...pods.values()].map(keyOf))) ?? [],
        );
      return texts.length === 0 ? undefined : texts.toSorted().join('; ');
    },
    /** Resolves once nothing runs any more: soon after `abort` aborts. */
    ended: async () => void (await Promise.all(running)),
  };
}

function uidOf({ metadata }: Pod): string {
  return metadata.uid ?? '';
}

type Describe = (pods: string) => string;

export interface EvictionRefusal {
  /** Equal for pods that are refused for the same reason. */
  readonly line: string;
  /** Without what changes with each answer: people read an answer with the same words only once. */
  readonly words: string;
  /** For people, given the names of the pods; undefined when nothing is wrong. */
  readonly describe: Describe | undefined;
  /** Retry-After of the server in milliseconds. */
  readonly waitMs: number;
}

/** The API server's cause: the name of the budget, then its reason. */
const BUDGET_CAUSE = /^The disruption budget (\S+) (.*?)\.?$/;

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
  // The watch will show that this pod is gone; another pod may have its name.
  if (thrown instanceof StatusError && [404, 409].includes(thrown.code))
    return refused(`pod ${uid}`, '');
  const ending = (pods: string): string =>
    `namespace ${namespace} is being deleted, and its pods with it: ${pods}`;
  if (messageOfCause(thrown, 'NamespaceTerminating') !== undefined)
    return refused(`namespace ${namespace}`, '', ending);
  const message = messageOf(thrown);
  // Pods' names, which API servers quote, ports, times and ids of requests are no other reason.
  const words = message
    .replaceAll(`"${name}"`, '')
    .replaceAll(/\S+/g, (word) => (/\d/.test(word) ? '#' : word));
  // No answer, or one that is not about the pod: overload, or a time-out in the server.
  if (
    thrown instanceof TransportError ||
    (thrown instanceof StatusError && [429, 503, 504].includes(thrown.code))
  )
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

function messageOfCause(thrown: unknown, reason: string): string | undefined {
  if (!(thrown instanceof StatusError)) return undefined;
  return thrown.status.details?.causes?.find((cause) => cause.reason === reason)?.message;
}
