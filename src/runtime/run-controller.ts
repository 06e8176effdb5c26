/**
 * Runs one controller. Events of its sources put keys into its queue, and its workers reconcile
 * them.
 */
import { type KubeObject, keyOf } from '../kube/resources.ts';
import type { Informer } from '../kube/watch/informer.ts';
import { formatDuration } from '../util/duration.ts';
import { messageOf } from '../util/errors.ts';
import type { Logger } from '../util/log.ts';
import { DEFAULT_TOOLS, type Tools } from '../util/tools.ts';
import { onAbort } from '../util/waits.ts';
import { type Metrics, noMetrics } from './metrics.ts';
import { WorkQueue } from './queue.ts';

export interface ReconcileContext {
  /**
   * Aborts after `timeoutMs`, or some seconds after the controller must stop. Pass it to every
   * request.
   */
  readonly abort: AbortSignal;
  readonly log: Logger;
  /** Aborts when the controller must stop. The reconcile must begin nothing new after that. */
  readonly stop?: AbortSignal;
}

export interface ReconcileResult {
  /**
   * Milliseconds after which the key is reconciled again without an event. Use it for deadlines and
   * windows, never to poll.
   */
  readonly requeueAfterMs?: number | undefined;
  /** Milliseconds for which the key is not reconciled again. All events until then count as one. */
  readonly restMs?: number | undefined;
}

/** Reconciles keys. The same key is never reconciled twice at the same time. Every error is retried with backoff. */
export interface Controller {
  readonly name: string;
  readonly sources: readonly EventSource[];
  /** The controller calls this function at the start of each term, because state in memory from an earlier term may be outdated. */
  begin?(): void;
  reconcile(key: string, context: ReconcileContext): Promise<ReconcileResult | void>;
  readonly concurrency: number;
  readonly timeoutMs: number;
}

/** The parts of the process that a controller uses. Each has a default. */
export interface ControllerParts extends Partial<Tools> {
  readonly metrics?: Metrics;
}

export const DEFAULT_PARTS: Required<ControllerParts> = { ...DEFAULT_TOOLS, metrics: noMetrics };

/** Milliseconds that a reconcile may still take after a stop. An aborted write may still reach the server. */
const STOP_GRACE_MS = 5_000;

/**
 * Runs the controller until `abort`, then waits for the running reconciles. It never rejects. The
 * informers of the sources must be synced.
 */
export async function runController(
  controller: Controller,
  abort: AbortSignal,
  parts: ControllerParts = {},
) {
  const { clock, random, log, metrics } = { ...DEFAULT_PARTS, ...parts };
  const own = log.child({ controller: controller.name });
  const queue = new WorkQueue({ clock, random });
  controller.begin?.();
  const report = (): void => metrics.queueDepth(controller.name, queue.depth());
  const stops = controller.sources.map((source) =>
    source.start((key) => {
      queue.add(key);
      report();
    }),
  );
  using listening = new DisposableStack();
  listening.use(
    onAbort(abort, () => {
      for (const stop of stops) stop();
      queue.close();
    }),
  );
  const worker = { controller, queue, clock, log: own, metrics, stop: abort };
  await Promise.all(Array.from({ length: controller.concurrency }, async () => await work(worker)));
  report();
}

interface WorkerParts extends Required<Pick<ControllerParts, 'clock' | 'log' | 'metrics'>> {
  readonly controller: Controller;
  readonly queue: WorkQueue;
  readonly stop: AbortSignal;
}

async function work(parts: WorkerParts): Promise<void> {
  const { queue, controller, metrics, clock } = parts;
  for (let key = await queue.next(); key !== undefined; key = await queue.next()) {
    metrics.queueDepth(controller.name, queue.depth());
    const startedAt = clock.monotonic();
    const { outcome, restMs } = await attempt(parts, key);
    metrics.reconciled(controller.name, outcome, (clock.monotonic() - startedAt) / 1000);
    queue.done(key, restMs);
  }
}

async function attempt(parts: WorkerParts, key: string) {
  const { queue, log } = parts;
  try {
    const { requeueAfterMs, restMs } = (await reconcile(parts, key)) ?? {};
    queue.forget(key);
    if (requeueAfterMs === undefined) return { outcome: 'success', restMs } as const;
    queue.addAfter(key, requeueAfterMs);
    return { outcome: 'requeue', restMs } as const;
  } catch (error) {
    if (!parts.stop.aborted)
      log.warn('reconcile failed, will retry', { key, problem: messageOf(error) });
    queue.retry(key);
    return { outcome: 'error' } as const;
  }
}

/**
 * Reconciles one key. If a reconcile ignores `abort`, it keeps its key and its worker, because two
 * reconciles of one key at the same time would be worse.
 */
async function reconcile(parts: WorkerParts, key: string): Promise<ReconcileResult | undefined> {
  const { controller, clock, log, stop } = parts;
  const time = new AbortController();
  using timers = new DisposableStack();
  const cancel = clock.schedule(controller.timeoutMs, () => {
    log.warn('reconcile takes too long', { key, timeoutMs: controller.timeoutMs });
    time.abort(new Error(`reconcile took longer than ${formatDuration(controller.timeoutMs)}`));
  });
  timers.defer(cancel);
  const endSoon = (): void =>
    timers.defer(
      clock.schedule(STOP_GRACE_MS, () => time.abort(new Error('the controller stops'))),
    );
  timers.use(onAbort(stop, endSoon));
  const context = {
    abort: time.signal,
    stop,
    log: log.child({ key }),
  };
  return (await controller.reconcile(key, context)) ?? undefined;
}

export type Enqueue = (key: string) => void;

/** Enqueues keys when objects change. */
export interface EventSource {
  /** The informer of the objects. It must be synced before the controller starts. */
  readonly informer: Informer;
  /** Enqueues the keys of every existing object, then of every change. The returned function stops this. */
  start(enqueue: Enqueue): () => void;
}

/** Returns true if a change is relevant. `previous` is absent for additions and deletions. */
export type Predicate<T extends KubeObject> = (object: T, previous?: T) => boolean;

/** Returns a source that enqueues the key of each object that changes. */
export function fromObject<T extends KubeObject>(
  informer: Informer<T>,
  when?: Predicate<T>,
): EventSource {
  return fromMapping(informer, (object) => [keyOf(object)], when);
}

/**
 * Returns a source that enqueues the keys which `keysOf` returns. After an update it enqueues the
 * keys of the old and of the new object, so that a key which the object no longer concerns is
 * enqueued, too.
 */
export function fromMapping<T extends KubeObject>(
  informer: Informer<T>,
  keysOf: (object: T) => readonly string[],
  when: Predicate<T> = () => true,
): EventSource {
  return {
    informer,
    start: (enqueue) => {
      const onChange = (object: T, previous?: T): void => {
        if (!when(object, previous)) return;
        for (const key of new Set([...keysOf(object), ...(previous ? keysOf(previous) : [])]))
          enqueue(key);
      };
      return informer.addHandler({
        added: onChange,
        updated: onChange,
        deleted: (object) => onChange(object),
      });
    },
  };
}

/**
 * Returns true if the spec changed, or the object was added or deleted. Writes to status and
 * metadata do not count.
 */
export function generationChanged<T extends KubeObject>(object: T, previous?: T): boolean {
  return previous === undefined || object.metadata.generation !== previous.metadata.generation;
}
