/**
 * Evicts many pods at the same time. Among the pods that are refused for the same reason, only one pod is retried at a
 * time.
 */
import type { Reading } from '../kube/client.ts';
import { keyOf, type Pod } from '../kube/resources.ts';
import { sleep } from '../util/clock.ts';
import type { Tools } from '../util/tools.ts';
import { semaphore } from '../util/waits.ts';
import { type EvictionLine, evictionLines, uidOf } from './eviction-lines.ts';
import { refusalOf } from './eviction-refusal.ts';
import { startEvictionRequests } from './eviction-requests.ts';
import type { DrainOptions } from './pods.ts';
import type { LookAtRequests } from './requests-look.ts';

export interface EvictionParts extends Tools, Reading {
  readonly options: DrainOptions;
  /** Lists the EvictionRequests once for all drains of the process. If it is absent, the drain lists them itself. */
  readonly lookAtRequests?: LookAtRequests;
  /** The name of the node that is drained. */
  readonly node: string;
  /** This function is called when the result of `blockedBy` or `waitingFor` may have changed. */
  readonly onChange: () => void;
}

/**
 * The maximum number of evictions that are requested at the same time. A node with a hundred pods does not need a
 * hundred connections.
 */
const PARALLEL = 16;

export interface Evictions {
  /**
   * Evicts exactly these pods: it stops retrying all other pods, and starts no eviction twice. The pods in `ending` are
   * already terminating; their EvictionRequests stay until the pods are deleted.
   */
  readonly want: (pods: readonly Pod[], ending: readonly Pod[]) => void;
  /**
   * Returns a text for people that says which budgets and other reasons block which pods; undefined if no pod is
   * blocked.
   */
  readonly blockedBy: () => string | undefined;
  /**
   * Returns a text for people that says who evicts which pods because of EvictionRequests; undefined if the drain waits
   * for no such eviction.
   */
  readonly waitingFor: () => string | undefined;
  /** Withdraws the EvictionRequests. Resolves when no request is running any more, which is soon after `abort` aborts. */
  readonly ended: () => Promise<void>;
}

/**
 * Returns an object that evicts pods in parallel, and retries those that a budget blocks. It stops
 * when `abort` aborts.
 */
export function startEvictions(parts: EvictionParts): Evictions {
  const { client, abort, options, onChange, clock, random, log } = parts;
  const withFreePlace = semaphore(PARALLEL);
  const lines = evictionLines({ clock, random, log });
  const running = new Set<Promise<void>>();
  const requested = usesRequests(options) ? startEvictionRequests(parts) : undefined;
  let wanted: ReadonlySet<string> = new Set();
  /**
   * Requests one eviction. Returns the queue in which the pod must wait; undefined if the pod terminates or is no
   * longer wanted.
   */
  const ask = async (pod: Pod, previous?: EvictionLine): Promise<EvictionLine | undefined> => {
    if (abort.aborted || !wanted.has(uidOf(pod))) return undefined;
    const { name, namespace = '' } = pod.metadata;
    const { gracePeriodSeconds } = options;
    try {
      await client.evict({ name, namespace, uid: uidOf(pod) }, { abort, gracePeriodSeconds });
      log.info('pod evicted', { pod: keyOf(pod) });
      previous?.pods.delete(uidOf(pod));
      // This eviction succeeded, so the budget may also allow the evictions of the other pods in the queue. The next
      // pauses of the queue are short again.
      if (previous) previous.refusals = 0;
      return undefined;
    } catch (error) {
      previous?.pods.delete(uidOf(pod));
      return abort.aborted ? undefined : lines.join(pod, refusalOf(error, pod));
    } finally {
      onChange();
    }
  };
  const askAfterPause = async (pod: Pod, line: EvictionLine): Promise<EvictionLine | undefined> => {
    const pauseMs = line.pauseUntil - clock.monotonic();
    if (pauseMs > 0 && wanted.has(uidOf(pod)))
      await sleep(clock, pauseMs, abort).catch(() => undefined);
    return await ask(pod, line);
  };
  /** Requests the eviction again after each refusal, until the pod terminates. Never rejects. */
  const evict = async (pod: Pod): Promise<void> => {
    if (requested && !(await requested.isLeftToDrain(pod))) return;
    let line = await withFreePlace(async () => await ask(pod));
    while (line) {
      const previous = line;
      line = await previous.oneAtATime(async () => await askAfterPause(pod, previous));
    }
  };
  return {
    want(pods, ending) {
      const before = wanted;
      wanted = new Set(pods.map(uidOf));
      lines.keepOnly(wanted);
      requested?.keepOnly(pods, ending);
      for (const pod of pods) {
        if (before.has(uidOf(pod))) continue;
        const evicting = evict(pod).finally(() => running.delete(evicting));
        running.add(evicting);
      }
    },
    blockedBy: () => lines.blockedBy(),
    waitingFor: () => requested?.waitingFor(),
    async ended() {
      await requested?.end();
      await Promise.all(running);
    },
  };
}

/**
 * Returns true if the drain uses EvictionRequests. An EvictionRequest cannot contain a grace period, so a drain with a
 * grace period does not use EvictionRequests.
 */
function usesRequests({ evictionRequests, gracePeriodSeconds }: DrainOptions): boolean {
  return evictionRequests === true && gracePeriodSeconds === undefined;
}
