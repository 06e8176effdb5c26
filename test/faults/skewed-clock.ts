/** One machine's idea of time: a clock that runs too fast or too slow, shows any date, and may be halted with its process. */
import type { Clock } from '../../src/util/clock.ts';

export interface Skew {
  /** Seconds of this clock for each true second. */
  readonly rate: number;
  /** Milliseconds by which the wall clock is wrong. */
  readonly offset: number;
}

/** Halting stops the process, not its clock: what became due in between happens at once when it goes on. */
export class SkewedClock implements Clock {
  readonly #base: Clock;
  readonly #skew: Skew;
  readonly #late = new Set<() => void>();
  #halted = false;
  #jumped = 0;

  constructor(base: Clock, skew: Skew) {
    this.#base = base;
    this.#skew = skew;
  }

  now(): number {
    return this.#base.now() + this.#skew.offset + this.#jumped;
  }

  /** Sets the wall clock by so many milliseconds; the steady one does not notice. */
  jump(ms: number): void {
    this.#jumped += ms;
  }

  monotonic(): number {
    return this.#base.monotonic() * this.#skew.rate;
  }

  schedule(ms: number, callback: () => void): () => void {
    let waiting: (() => void) | undefined;
    // Whole milliseconds, as timers of Node: less than a float can add would never end.
    const cancel = this.#base.schedule(Math.ceil(ms / this.#skew.rate), () => {
      if (!this.#halted) return callback();
      waiting = callback;
      this.#late.add(callback);
    });
    return () => {
      cancel();
      if (waiting) this.#late.delete(waiting);
    };
  }

  get halted(): boolean {
    return this.#halted;
  }

  halt(): void {
    this.#halted = true;
  }

  /** What was missed happens in the order in which it was due. */
  resume(): void {
    this.#halted = false;
    for (const callback of this.#late) callback();
    this.#late.clear();
  }

  /** Resolves when the process runs. */
  async running(): Promise<void> {
    if (this.#halted) await new Promise<void>((resolve) => this.#late.add(resolve));
  }
}
