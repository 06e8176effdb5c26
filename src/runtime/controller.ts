/** Runs one controller: keys from the events of its sources, through its queue, to its reconcile function. */
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
  /** Aborts after `timeoutMs`, or some seconds after the controller must stop. Pass it to every request. */
  readonly abort: AbortSignal;
  readonly log: Logger;
  /** Aborts when the controller must stop: begin nothing new then. */
  readonly stop?: AbortSignal;
}

export interface ReconcileResult {
  /** Milliseconds after which the key is reconciled again without an event: for deadlines and windows, never to poll. */
  readonly requeueAfterMs?: number | undefined;
  /** Milliseconds for which the key is not reconciled again: all events until then count as one. */
  readonly restMs?: number | undefined;
}

/** Never reconciles a key twice at once. Every error is retried with backoff. */
export interface Controller {
  readonly name: string;
  readonly sources: readonly EventSource[];
  /** Called at the start of each term: what the last one remembered may be outdated. */
  begin?(): void;
  reconcile(key: string, context: ReconcileContext): Promise<ReconcileResult | void>;
  readonly concurrency: number;
  readonly timeoutMs: number;
}

export interface ControllerParts extends Partial<Tools> {
  readonly metrics?: Metrics;
}

export const DEFAULT_PARTS: Required<ControllerParts> = { ...DEFAULT_TOOLS, metrics: noMetrics };

/** Milliseconds in which a reconcile may finish after a stop: a write that is cut off may still arrive. */
const STOP_GRACE_MS = 5_000;

/** Runs until `abort`, then waits for the reconciles at work. Never rejects. The sources' informers must be synced. */
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

/** A reconcile that ignores `abort` keeps its key and its worker: two at once for one key would be worse. */
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

export interface EventSource {
  /** Must be synced before the controller starts. */
  readonly informer: Informer;
  /** Enqueues every object there is, then every change; the returned function ends it. */
  start(enqueue: Enqueue): () => void;
}

/** Filters changes; `previous` is absent for additions and deletions. */
export type Predicate<T extends KubeObject> = (object: T, previous?: T) => boolean;

export function fromObject<T extends KubeObject>(
  informer: Informer<T>,
  when?: Predicate<T>,
): EventSource {
  return fromMapping(informer, (object) => [keyOf(object)], when);
}

/** Enqueues keys by any function. An update maps both states, so that keys which it no longer concerns hear of it too. */
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

/** The spec changed, or the object came or went. Writes to status and metadata do not count. */
export function generationChanged<T extends KubeObject>(object: T, previous?: T): boolean {
  return previous === undefined || object.metadata.generation !== previous.metadata.generation;
}
