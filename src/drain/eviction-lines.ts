/** Keeps the pods that may not be evicted yet, one line for each reason, and says when each line may ask again. */
import { keyOf, type Pod } from '../kube/resources.ts';
import { backoffDelay } from '../util/clock.ts';
import type { Tools } from '../util/tools.ts';
import { semaphore } from '../util/waits.ts';
import { nameSome } from './budgets.ts';
import type { EvictionRefusal } from './eviction-refusal.ts';

/** Milliseconds between two attempts after a refusal. */
const RETRY = { base: 1_000, cap: 10_000 };
/** Pods refused for the same reason. They take turns: one asks, and only after the pause. */
export interface EvictionLine {
  /** By uid. */
  readonly pods: Map<string, Pod>;
  readonly inTurn: ReturnType<typeof semaphore>;
  refusal: EvictionRefusal;
  /** How often the line was refused in a row. */
  refusals: number;
  /** Monotonic milliseconds: until then nobody of the line asks. */
  pauseUntil: number;
}

export interface EvictionLines {
  /** Puts the pod into the line of its refusal, and returns that line. Its pause grows with each refusal. */
  readonly join: (pod: Pod, refusal: EvictionRefusal) => EvictionLine;
  /** Removes the pods with other uids. */
  readonly keepOnly: (uids: ReadonlySet<string>) => void;
  /** Returns for people which budgets block which pods, and what else refuses; undefined if nothing does. */
  readonly blockedBy: () => string | undefined;
}

function openLine(refusal: EvictionRefusal): EvictionLine {
  return { pods: new Map(), inTurn: semaphore(1), refusal, refusals: 0, pauseUntil: 0 };
}

/** Starts without any pods. */
export function evictionLines({ clock, random, log }: Tools): EvictionLines {
  const lines = new Map<string, EvictionLine>();
  return {
    join(pod, refusal) {
      const line = lines.getOrInsertComputed(refusal.line, () => openLine(refusal));
      if (line.refusal.words !== refusal.words) line.refusal = refusal;
      line.pods.set(uidOf(pod), pod);
      // Parallel requests were refused for the same reason: count it once.
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
