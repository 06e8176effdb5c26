/** Parts of a process that start and stop together, within a time limit. */
import { type Clock, sleep } from '../util/clock.ts';
import { messageOf } from '../util/errors.ts';
import type { Logger } from '../util/log.ts';

/** `run` must end soon after `abort`. */
export interface Runnable {
  readonly name: string;
  run(abort: AbortSignal): Promise<void>;
}

export interface GroupParts {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly stopTimeoutMs: number;
  /** Called if a part fails before the group stops. */
  readonly onFailure: (error: unknown) => void;
}

export class Group {
  readonly #parts: GroupParts;
  readonly #stopping = new AbortController();
  readonly #running = new Map<Runnable, Promise<void>>();

  constructor(parts: GroupParts) {
    this.#parts = parts;
  }

  start(runnable: Runnable): void {
    const running = this.#run(runnable).finally(() => this.#running.delete(runnable));
    this.#running.set(runnable, running);
  }

  /** Rejects if a part still runs after the time limit. */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error('stopping'));
    const { clock, stopTimeoutMs } = this.#parts;
    const ended = new AbortController();
    const all = Promise.all(this.#running.values()).then(() => ended.abort());
    await Promise.race([all, sleep(clock, stopTimeoutMs, ended.signal).catch(() => undefined)]);
    if (ended.signal.aborted) return;
    const names = [...this.#running.keys()].map(({ name }) => name).join(', ');
    throw new Error(`not stopped within ${stopTimeoutMs} ms: ${names}`);
  }

  async #run(runnable: Runnable): Promise<void> {
    const { logger, onFailure } = this.#parts;
    try {
      await runnable.run(this.#stopping.signal);
    } catch (error) {
      logger.error('a part of the process failed', { part: runnable.name, problem: messageOf(error) });
      if (!this.#stopping.signal.aborted) onFailure(error);
    }
  }
}
