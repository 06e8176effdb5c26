/** Owns the loop of one controller: keys from its sources, through its queue, to its reconcile function. */
import { type Clock, systemClock } from '../util/clock.ts';
import { messageOf, TerminalError } from '../util/errors.ts';
import { type Logger, silentLogger } from '../util/log.ts';
import { type Metrics, noMetrics, type ReconcileOutcome } from './metrics.ts';
import { createQueue, type WorkQueue } from './queue.ts';
import type { EventSource } from './sources.ts';

export interface ReconcileContext {
  /** Aborts when the time is over, or some seconds after the controller had to stop; pass it to every request. */
  readonly abort: AbortSignal;
  readonly logger: Logger;
  /** Failures of this key in a row before this attempt. */
  readonly failures: number;
}

export interface ReconcileResult {
  /** Milliseconds after which the key is looked at again without an event: for deadlines and windows, never to poll. */
  readonly requeueAfterMs?: number | undefined;
  /** Milliseconds in which the key is not looked at again whatever happens; all that happens until then is seen at once. */
  readonly restMs?: number | undefined;
}

/**
 * Reconciles one key at a time (never the same key twice at once). Nothing or an empty result means done until the next
 * event; a TerminalError means the same with an error; whatever else is thrown is retried with backoff.
 */
export interface Controller {
  readonly name: string;
  readonly sources: readonly EventSource[];
  /** Called each time that it begins to run: what was seen when it last did may be long past. */
  begin?(): void;
  reconcile(key: string, context: ReconcileContext): Promise<ReconcileResult | void>;
  /** Keys at work at the same time. */
  readonly concurrency: number;
  /** Milliseconds one reconcile may take; 60 s is much, as each request has its own deadline. */
  readonly timeoutMs: number;
}

export interface ControllerParts {
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly logger?: Logger;
  readonly metrics?: Metrics;
}

/**
 * Milliseconds in which a reconcile may end by itself after the controller had to stop: a write that is cut off leaves
 * doubt about its fate, and with it a lease that cannot be handed over at once.
 */
const STOP_GRACE_MS = 5_000;

/**
 * Runs until `signal` aborts, then waits for what is at work. Never rejects.
 * The sources' informers must be running and synced.
 */
export async function runController(
  controller: Controller,
  abort: AbortSignal,
  parts: ControllerParts = {},
): Promise<void> {
  const { clock = systemClock, random = Math.random, logger = silentLogger, metrics = noMetrics } = parts;
  const own = logger.child({ controller: controller.name });
  const queue = createQueue({ clock, random });
  controller.begin?.();
  const report = (): void => metrics.queueDepth(controller.name, queue.depth());
  const stops = controller.sources.map((source) =>
    source.start((key, priority) => {
      queue.add(key, priority);
      report();
    }),
  );
  const onAbort = (): void => {
    for (const stop of stops) stop();
    queue.close();
  };
  abort.addEventListener('abort', onAbort, { once: true });
  if (abort.aborted) onAbort();
  const worker = new Worker({ controller, queue, clock, logger: own, metrics, stop: abort });
  await Promise.all(Array.from({ length: controller.concurrency }, async () => await worker.run()));
  abort.removeEventListener('abort', onAbort);
  report();
}

interface WorkerParts extends Required<Pick<ControllerParts, 'clock' | 'logger' | 'metrics'>> {
  readonly controller: Controller;
  readonly queue: WorkQueue;
  readonly stop: AbortSignal;
}

class Worker {
  readonly #parts: WorkerParts;

  constructor(parts: WorkerParts) {
    this.#parts = parts;
  }

  async run(): Promise<void> {
    const { queue, controller, metrics, clock } = this.#parts;
    for (let key = await queue.next(); key !== undefined; key = await queue.next()) {
      metrics.queueDepth(controller.name, queue.depth());
      const startedAt = clock.monotonic();
      const { outcome, restMs } = await this.#process(key);
      metrics.reconciled(controller.name, outcome, (clock.monotonic() - startedAt) / 1000);
      queue.done(key, restMs);
    }
  }

  async #process(key: string): Promise<{ outcome: ReconcileOutcome; restMs?: number | undefined }> {
    const { queue, logger } = this.#parts;
    try {
      const { requeueAfterMs, restMs } = (await this.#reconcile(key)) ?? {};
      queue.forget(key);
      if (requeueAfterMs === undefined) return { outcome: 'success', restMs };
      queue.addAfter(key, requeueAfterMs);
      return { outcome: 'requeue', restMs };
    } catch (error) {
      if (error instanceof TerminalError) {
        queue.forget(key);
        logger.error('reconcile failed for good', { key, problem: messageOf(error) });
        return { outcome: 'terminal' };
      }
      if (!this.#parts.stop.aborted) logger.warn('reconcile failed', { key, problem: messageOf(error) });
      queue.retry(key);
      return { outcome: 'error' };
    }
  }

  /** A reconcile that ignores its signal keeps its key and its worker: two at once for one key would be worse. */
  async #reconcile(key: string): Promise<ReconcileResult | undefined> {
    const { controller, clock, logger, stop, queue } = this.#parts;
    const time = new AbortController();
    const cancel = clock.schedule(controller.timeoutMs, () => {
      logger.warn('reconcile takes too long', { key, timeoutMs: controller.timeoutMs });
      time.abort(new Error(`reconcile took longer than ${controller.timeoutMs} ms`));
    });
    const onStop = (): void => {
      cancelGrace = clock.schedule(STOP_GRACE_MS, () => time.abort(new Error('the controller stops')));
    };
    let cancelGrace = (): void => undefined;
    stop.addEventListener('abort', onStop, { once: true });
    // The key may have been handed out in the very moment of the end.
    if (stop.aborted) onStop();
    try {
      const context = { abort: time.signal, logger: logger.child({ key }), failures: queue.retries(key) };
      return (await controller.reconcile(key, context)) ?? undefined;
    } finally {
      cancel();
      cancelGrace();
      stop.removeEventListener('abort', onStop);
    }
  }
}
