/** Reads the locks of other tools in the background, while unfinished plans coordinate with them. No decision waits for an answer. */
import type { KubeClient } from '../kube/client.ts';
import { daemonSets } from '../kube/resources.ts';
import { ifFound } from '../kube/status-error.ts';
import type { Clock } from '../util/clock.ts';
import { messageOf } from '../util/errors.ts';
import { sameJson } from '../util/json.ts';
import { printable } from '../util/printable.ts';
import { aborted } from '../util/waits.ts';
import { KURED, kuredLocks } from './kured-lock.ts';
import type { OtherLock } from './tool.ts';

export interface LockReader {
  /** Reads the locks from now on, until `forget` is called for the plan. */
  follow(plan: string): void;
  forget(plan: string): void;
  /** Returns the locks that others held at the last look; undefined if nobody has looked yet. */
  locks(): readonly OtherLock[] | undefined;
  /** Calls the listener when the locks change. The result ends that. */
  onChange(listener: () => void): () => void;
  /** Runs until `stop` aborts. Before and after that nothing is read, and nothing is known. */
  run(stop: AbortSignal): Promise<void>;
}

/** Milliseconds between two looks. */
const EVERY_MS = 10_000;

export function createLockReader(client: Pick<KubeClient, 'get'>, clock: Clock): LockReader {
  const plans = new Set<string>();
  const listeners = new Set<() => void>();
  let found: readonly OtherLock[] | undefined;
  let running: AbortSignal | undefined;
  let cancel: (() => void) | undefined;
  /** The number of the current series of looks. An answer of an earlier series is dropped. */
  let series = 0;

  async function read(stop: AbortSignal): Promise<void> {
    const own = series;
    const locks = await readLocks(client, clock, stop);
    if (stop.aborted || own !== series) return;
    const isSame = found !== undefined && sameJson(found, locks);
    found = locks;
    cancel = clock.schedule(EVERY_MS, () => void read(stop));
    if (!isSame) for (const listener of listeners) listener();
  }

  return {
    follow(plan) {
      const isFirst = plans.size === 0;
      plans.add(plan);
      if (isFirst && running) void read(running);
    },
    forget(plan) {
      if (!plans.delete(plan) || plans.size > 0) return;
      cancel?.();
      series++;
      found = undefined;
    },
    locks: () => found,
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    async run(stop) {
      running = stop;
      if (plans.size > 0) void read(stop);
      await aborted(stop);
      cancel?.();
      plans.clear();
      found = undefined;
      running = undefined;
    },
  };
}

/** Resolves with the locks. A lock that cannot be read counts as held, because its holder may be at work. */
async function readLocks(
  client: Pick<KubeClient, 'get'>,
  clock: Clock,
  abort: AbortSignal,
): Promise<OtherLock[]> {
  const { name, namespace } = KURED;
  try {
    const kured = await ifFound(client.get(daemonSets, name, { namespace, abort }));
    return kuredLocks(kured?.metadata.annotations, clock.now());
  } catch (error) {
    const problem = printable(messageOf(error));
    return [
      {
        tool: 'Kured',
        message: `the lock of Kured cannot be read: ${problem}`,
        ends: `the API server lets Refit read the DaemonSet ${namespace}/${name}`,
      },
    ];
  }
}
