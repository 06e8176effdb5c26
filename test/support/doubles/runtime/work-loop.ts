/**
 * One control loop as controller-runtime runs it: a queue without duplicates, one worker, and a back-off for each item.
 */
import { type Clock, systemClock } from '../../../../src/util/clock.ts';
import { messageOf } from '../../../../src/util/errors.ts';
import type { Logger } from '../../../../src/util/log.ts';

/** Resolves with the milliseconds after which the item is handled again, or with undefined if it is done. */
export type Reconcile = (name: string) => Promise<number | undefined>;

/** The back-off in milliseconds. It is doubled after every failure of the item. */
const BACKOFF = { base: 5, cap: 1_000_000 };

export class WorkLoop {
  readonly #reconcile: Reconcile;
  readonly #abort: AbortSignal;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #queue: string[] = [];
  readonly #failures = new Map<string, number>();
  #active: string | undefined;
  #again = false;
  #running: Promise<void> = Promise.resolve();

  /** Starts no item after `signal` has aborted. */
  constructor(reconcile: Reconcile, abort: AbortSignal, log: Logger, clock: Clock = systemClock) {
    this.#reconcile = reconcile;
    this.#abort = abort;
    this.#log = log;
    this.#clock = clock;
  }

  add(name: string): void {
    if (this.#abort.aborted) return;
    if (name === this.#active) {
      this.#again = true;
      return;
    }
    if (this.#queue.includes(name)) return;
    this.#queue.push(name);
    if (this.#active === undefined && this.#queue.length === 1) this.#running = this.#work();
  }

  /** Resolves when no item is being handled. */
  async settled(): Promise<void> {
    await this.#running;
  }

  async #work(): Promise<void> {
    // A caller may add more items before the first item starts. For example, an informer does so when it replays the
    // objects that it knows.
    await Promise.resolve();
    while (!this.#abort.aborted) {
      const name = this.#queue.shift();
      if (name === undefined) return;
      this.#active = name;
      await this.#once(name);
      this.#active = undefined;
      if (this.#again && !this.#queue.includes(name)) this.#queue.push(name);
      this.#again = false;
    }
  }

  async #once(name: string): Promise<void> {
    try {
      const againMs = await this.#reconcile(name);
      this.#failures.delete(name);
      if (againMs !== undefined) this.#later(name, againMs);
    } catch (error) {
      if (this.#abort.aborted) return;
      const failures = this.#failures.get(name) ?? 0;
      this.#failures.set(name, failures + 1);
      this.#log.warn('reconcile failed', { name, failures, problem: messageOf(error) });
      this.#later(name, Math.min(BACKOFF.cap, BACKOFF.base * 2 ** Math.min(failures, 30)));
    }
  }

  #later(name: string, ms: number): void {
    const cancel = this.#clock.schedule(ms, () => {
      this.#abort.removeEventListener('abort', cancel);
      this.add(name);
    });
    this.#abort.addEventListener('abort', cancel, { once: true });
  }
}
