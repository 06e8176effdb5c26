/** Evicts pods: all at once, but only one at a time of those refused for the same reason. */
import type { Reading } from '../kube/client.ts';
import { keyOf, type Pod } from '../kube/resources.ts';
import { sleep } from '../util/clock.ts';
import type { Tools } from '../util/tools.ts';
import { semaphore } from '../util/waits.ts';
import { type EvictionLine, evictionLines, uidOf } from './eviction-lines.ts';
import { refusalOf } from './eviction-refusal.ts';
import type { DrainOptions } from './pods.ts';

export interface EvictionParts extends Tools, Reading {
  readonly options: DrainOptions;
  /** Called when `blockedBy` may have changed. */
  readonly onChange: () => void;
}

/** Parallel requests: the hundred pods of a node need no hundred connections. */
const PARALLEL = 16;

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
  const lines = evictionLines({ clock, random, log });
  const running = new Set<Promise<void>>();
  let wanted: ReadonlySet<string> = new Set();
  /** The line to wait in; undefined when the pod terminates, or need not go any more. */
  const ask = async (pod: Pod, previous?: EvictionLine): Promise<EvictionLine | undefined> => {
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
      return abort.aborted ? undefined : lines.join(pod, refusalOf(error, pod));
    } finally {
      onChange();
    }
  };
  const askInTurn = async (pod: Pod, line: EvictionLine): Promise<EvictionLine | undefined> => {
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
      lines.keepOnly(wanted);
      for (const pod of pods) {
        if (before.has(uidOf(pod))) continue;
        const evicting = evict(pod).finally(() => running.delete(evicting));
        running.add(evicting);
      }
    },
    /** For people: which budgets block which pods, and what else refuses; undefined when nothing does. */
    blockedBy: lines.blockedBy,
    /** Resolves once nothing runs any more: soon after `abort` aborts. */
    ended: async () => void (await Promise.all(running)),
  };
}
