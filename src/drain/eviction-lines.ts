/** Keeps the pods that may not be evicted yet in one queue for each reason, and decides when each queue may retry. */
import { keyOf, type Pod } from '../kube/resources.ts';
import { backoffDelay } from '../util/clock.ts';
import type { Tools } from '../util/tools.ts';
import { semaphore } from '../util/waits.ts';
import { nameSome } from './budgets.ts';
import type { EvictionRefusal } from './eviction-refusal.ts';

/** The backoff between two attempts after a refusal, in milliseconds. */
const RETRY = { base: 1_000, cap: 10_000 };
/**
 * A queue of the pods that are refused for the same reason. Only one of these pods is retried at a time, and only after
 * the pause.
 */
export interface EvictionLine {
  /** The keys are the uids of the pods. */
  readonly pods: Map<string, Pod>;
  /** Runs the tasks of the queue one after the other. */
  readonly oneAtATime: <T>(task: () => Promise<T>) => Promise<T>;
  refusal: EvictionRefusal;
  /** The number of consecutive refusals. */
  refusals: number;
  /** No pod of the queue is evicted before this time, in monotonic milliseconds. */
  pauseUntil: number;
}

export interface EvictionLines {
  /**
   * Adds the pod to the queue for its refusal, and returns that queue. The pause of the queue grows with each refusal.
   */
  readonly join: (pod: Pod, refusal: EvictionRefusal) => EvictionLine;
  /** Removes from all queues the pods whose uids are not in `uids`. */
  readonly keepOnly: (uids: ReadonlySet<string>) => void;
  /**
   * Returns a text for people that says which budgets and other reasons block which pods. Returns undefined if no pod
   * is blocked.
   */
  readonly blockedBy: () => string | undefined;
}

function openLine(refusal: EvictionRefusal): EvictionLine {
  return { pods: new Map(), oneAtATime: semaphore(1), refusal, refusals: 0, pauseUntil: 0 };
}

/** Returns an object whose queues contain no pods yet. */
export function evictionLines({ clock, random, log }: Tools): EvictionLines {
  const lines = new Map<string, EvictionLine>();
  return {
    join(pod, refusal) {
      const line = lines.getOrInsertComputed(refusal.line, () => openLine(refusal));
      if (line.refusal.words !== refusal.words) line.refusal = refusal;
      line.pods.set(uidOf(pod), pod);
      // During the pause of the queue, only evictions that were already running in parallel can be refused. Together
      // they count as one refusal, so the pause does not change.
      if (clock.monotonic() < line.pauseUntil) return line;
      const backoffMs = backoffDelay(line.refusals, { ...RETRY, random });
      line.refusals++;
      const pauseMs = Math.max(refusal.waitMs, backoffMs);
      line.pauseUntil = clock.monotonic() + pauseMs;
      const fields = { problem: refusal.describe?.(keyOf(pod)), retryInMs: Math.round(pauseMs) };
      if (line.refusals === 1) log.info('eviction refused', fields);
      else log.debug('eviction still refused', fields);
      return line;
    },
    keepOnly(uids) {
      for (const [key, { pods: waiting }] of lines) {
        for (const uid of waiting.keys()) if (!uids.has(uid)) waiting.delete(uid);
        if (waiting.size === 0) lines.delete(key);
      }
    },
    blockedBy() {
      const texts = [...lines.values()]
        .filter(({ pods }) => pods.size > 0)
        .flatMap(
          ({ refusal, pods }) => refusal.describe?.(nameSome([...pods.values()].map(keyOf))) ?? [],
        );
      return texts.length === 0 ? undefined : texts.toSorted().join('; ');
    },
  };
}

/** Returns the uid of a pod; empty if the API server has given it none. */
export function uidOf({ metadata }: Pod): string {
  return metadata.uid ?? '';
}
