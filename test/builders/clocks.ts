/** Owns a clock for tests that stands still until it is told to move; timers fire when it passes them. */
import type { Clock } from '../../src/util/clock.ts';
import { T0 } from './times.ts';

export class ManualClock implements Clock {
  #now = T0;
  readonly #timers = new Map<() => void, number>();

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#now - T0;
  }

  schedule(ms: number, callback: () => void): () => void {
    this.#timers.set(callback, this.#now + ms);
    return () => this.#timers.delete(callback);
  }

  get pending(): number {
    return this.#timers.size;
  }

  /** Moves on by that many milliseconds, and runs what is due in order of time. */
  advance(ms: number): void {
    this.#now += ms;
    const due = [...this.#timers].filter(([, at]) => at <= this.#now).toSorted(([, a], [, b]) => a - b);
    for (const [callback] of due) {
      this.#timers.delete(callback);
      callback();
    }
  }
}
