/**
 * Implements the work queue of a controller. A key is in the queue at most once, and at most one
 * worker has it. Keys can be delayed and retried.
 */
import { backoffDelay, type Clock, createTokenBucket } from '../util/clock.ts';
import type { Tools } from '../util/tools.ts';

/** Milliseconds before the first retry of a key. The pause doubles with each further retry, up to `cap`. */
const RETRY = { base: 100, cap: 120_000 };
/**
 * The limit for the retries of all keys together, so that the retries of a thousand keys do not reach a failing server
 * at the same time.
 */
const RETRIES = { perSecond: 10, burst: 100 };

export class WorkQueue {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #takeToken: () => number;
  /** Keys that are due, in the order in which they were added. */
  readonly #due = new Set<string>();
  readonly #working = new Set<string>();
  /**
   * The delayed keys. Each has the monotonic time in milliseconds at which the key becomes due, and a function that
   * cancels its timer.
   */
  readonly #delayed = new Map<string, { readonly at: number; readonly cancel: () => void }>();
  readonly #restingUntil = new Map<string, number>();
  readonly #failures = new Map<string, number>();
  readonly #waiting: ((key: string | undefined) => void)[] = [];
  #closed = false;

  constructor({ clock, random }: Pick<Tools, 'clock' | 'random'>) {
    this.#clock = clock;
    this.#random = random;
    this.#takeToken = createTokenBucket(clock, RETRIES);
  }

  /** Makes the key due. If a worker has the key, it becomes due again after `done`. */
  add(key: string): void {
    if (this.#closed) return;
    const rest = this.#restOf(key);
    if (rest > 0) return this.addAfter(key, rest);
    this.#due.add(key);
    this.#hand();
  }

  /** Adds the key in `ms`. If the key has several delays, the earliest delay counts. */
  addAfter(key: string, ms: number): void {
    if (this.#closed) return;
    if (ms <= 0) return this.add(key);
    const at = this.#clock.monotonic() + ms;
    const known = this.#delayed.get(key);
    if (at >= (known?.at ?? Number.POSITIVE_INFINITY)) return;
    known?.cancel();
    const cancel = this.#clock.schedule(ms, () => {
      this.#delayed.delete(key);
      this.add(key);
    });
    this.#delayed.set(key, { at, cancel });
  }

  /** Adds the key after the backoff of that key, once the limit for the retries of all keys allows it. */
  retry(key: string): void {
    const failures = this.#failures.get(key) ?? 0;
    this.#failures.set(key, failures + 1);
    const own = backoffDelay(failures, { ...RETRY, random: this.#random });
    this.addAfter(key, Math.max(own, this.#takeToken()));
  }

  /** Ends the backoff of the key. Its next failure counts as the first. */
  forget(key: string): void {
    this.#failures.delete(key);
  }

  /**
   * Resolves with the next key, which the caller has until `done`, or with undefined once the queue
   * is closed.
   */
  async next(): Promise<string | undefined> {
    if (this.#closed) return undefined;
    return this.#take() ?? (await new Promise((resolve) => this.#waiting.push(resolve)));
  }

  /**
   * Must be called when the caller has finished with the key. For `restMs` the key does not become
   * due again, however often it is added.
   */
  done(key: string, restMs = 0): void {
    this.#working.delete(key);
    if (restMs > 0) {
      this.#restingUntil.set(key, this.#clock.monotonic() + restMs);
      if (this.#due.delete(key)) this.addAfter(key, restMs);
    }
    this.#hand();
  }

  /**
   * Returns the number of keys that are due. This includes a key that became due again while a worker still processes
   * it.
   */
  depth(): number {
    return this.#due.size;
  }

  /** Drops all keys and ends every waiting `next`. The next leader lists all keys again. */
  close(): void {
    this.#closed = true;
    for (const { cancel } of this.#delayed.values()) cancel();
    this.#due.clear();
    this.#delayed.clear();
    this.#restingUntil.clear();
    for (const resolve of this.#waiting.splice(0)) resolve(undefined);
  }

  #restOf(key: string): number {
    const rest = (this.#restingUntil.get(key) ?? 0) - this.#clock.monotonic();
    if (rest <= 0) this.#restingUntil.delete(key);
    return rest;
  }

  #take(): string | undefined {
    for (const key of this.#due) {
      if (this.#working.has(key)) continue;
      this.#due.delete(key);
      this.#working.add(key);
      return key;
    }
    return undefined;
  }

  #hand(): void {
    if (this.#closed || this.#waiting.length === 0) return;
    const key = this.#take();
    if (key !== undefined) this.#waiting.shift()?.(key);
  }
}
