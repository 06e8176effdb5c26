/**
 * Reads something again and again in the background, as long as a plan needs it. No decision waits for the answer: a
 * decision uses the last one.
 */
import { type Clock, sleep } from './clock.ts';
import { createListeners } from './listeners.ts';
import { aborted } from './waits.ts';

export interface BackgroundReader<T> {
  /** The name of this part of the process. */
  readonly name: string;
  /**
   * Records whether the plan needs the answers from now on. `plan` identifies the plan among the plans of all dialects.
   */
  follow(plan: string, isNeeded: boolean): void;
  forget(plan: string): void;
  /** Returns the last answer; `unasked` until the first attempt has ended. */
  known(): T | 'unasked';
  /** Calls the listener when an answer is news. The returned function removes the listener. */
  onChange(listener: () => void): () => void;
  /** Runs until `stop` aborts. Answers are known only during this time. */
  run(stop: AbortSignal): Promise<void>;
}

export interface ReaderParts<T> {
  readonly name: string;
  readonly clock: Clock;
  /** Milliseconds between the end of an attempt and the start of the next attempt. */
  readonly everyMs: number;
  /** Makes one attempt. It must not reject, and it must end soon after the signal aborts. */
  read(ended: AbortSignal, before: T | 'unasked'): Promise<T>;
  /** Returns true if the listeners must be called because of this answer. */
  isNews(before: T | 'unasked', found: T): boolean;
  /** Is called when no plan needs the answers any more, after which the next answer is the first one again. */
  forgotten?(): void;
}

export function createBackgroundReader<T>(parts: ReaderParts<T>): BackgroundReader<T> {
  return new Reader(parts);
}

class Reader<T> implements BackgroundReader<T> {
  readonly name: string;
  readonly #parts: ReaderParts<T>;
  readonly #listeners = createListeners();
  /** The plans that need the answers. */
  readonly #plans = new Set<string>();
  #known: T | 'unasked' = 'unasked';
  /** Aborts the running and the planned attempts; undefined if there are no such attempts. */
  #attempts: AbortController | undefined;
  #stop: AbortSignal | undefined;

  constructor(parts: ReaderParts<T>) {
    this.name = parts.name;
    this.#parts = parts;
  }

  follow(plan: string, isNeeded: boolean): void {
    if (!isNeeded) {
      this.forget(plan);
      return;
    }
    this.#plans.add(plan);
    this.#begin();
  }

  forget(plan: string): void {
    this.#plans.delete(plan);
    if (this.#plans.size === 0) this.#end();
  }

  known(): T | 'unasked' {
    return this.#known;
  }

  onChange(listener: () => void): () => void {
    return this.#listeners.add(listener);
  }

  async run(stop: AbortSignal): Promise<void> {
    this.#stop = stop;
    if (this.#plans.size > 0) this.#begin();
    await aborted(stop);
    this.#stop = undefined;
    this.#plans.clear();
    this.#end();
  }

  #begin(): void {
    if (this.#stop === undefined || this.#attempts !== undefined) return;
    this.#attempts = new AbortController();
    void this.#keepReading(this.#attempts.signal);
  }

  #end(): void {
    this.#attempts?.abort();
    this.#attempts = undefined;
    this.#known = 'unasked';
    this.#parts.forgotten?.();
  }

  async #keepReading(ended: AbortSignal): Promise<void> {
    const { clock, everyMs } = this.#parts;
    while (!ended.aborted) {
      const found = await this.#parts.read(ended, this.#known);
      if (ended.aborted) return;
      const isNews = this.#parts.isNews(this.#known, found);
      this.#known = found;
      if (isNews) this.#listeners.call();
      await sleep(clock, everyMs, ended).catch(() => undefined);
    }
  }
}
