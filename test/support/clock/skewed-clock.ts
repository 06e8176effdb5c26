/**
 * A clock that shows the time of another clock in a changed way. It can run faster or slower, show another date,
 * shorten pauses, and be halted together with its process.
 */
import type { Clock } from '../../../src/util/clock.ts';

export interface Skew {
  /** Seconds of this clock for each second of the other clock; 1 by default. A higher rate also makes pauses shorter. */
  readonly rate?: number;
  /** Milliseconds by which the wall clock is ahead of the other clock; 0 by default. */
  readonly offset?: number;
  /**
   * The factor for the length of pauses, in addition to the rate; 1 by default. For example, 0.01 turns seconds of
   * waiting into hundredths of seconds.
   */
  readonly pauses?: number;
}

/**
 * A clock that can be halted. Halting stops the process and not the time. Timers that become due during the halt fire
 * at once when the process continues.
 */
export class SkewedClock implements Clock {
  readonly #base: Clock;
  readonly #skew: Required<Skew>;
  readonly #late = new Set<() => void>();
  #halted = false;
  #jumped = 0;
  #skipped = 0;

  constructor(base: Clock, { rate = 1, offset = 0, pauses = 1 }: Skew = {}) {
    this.#base = base;
    this.#skew = { rate, offset, pauses };
  }

  now(): number {
    return this.#base.now() + this.#skew.offset + this.#jumped + this.#skipped;
  }

  /** Moves the wall clock by `ms` milliseconds. The monotonic clock does not change. */
  jump(ms: number): void {
    this.#jumped += ms;
  }

  /**
   * Moves the wall clock and the monotonic clock by `ms` milliseconds at once. Timers that run already keep their ends.
   */
  skip(ms: number): void {
    this.#skipped += ms;
  }

  monotonic(): number {
    return this.#base.monotonic() * this.#skew.rate + this.#skipped;
  }

  schedule(ms: number, callback: () => void): () => void {
    let waiting: (() => void) | undefined;
    const { rate, pauses } = this.#skew;
    // Rounds up to whole milliseconds, like the timers of Node. A pause that is too short for the precision of a float
    // would never end.
    const cancel = this.#base.schedule(Math.ceil((ms * pauses) / rate), () => {
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

  /** Continues the process. The missed timers fire in the order in which they were due. */
  resume(): void {
    this.#halted = false;
    for (const callback of this.#late) callback();
    this.#late.clear();
  }

  /** Resolves when the process is not halted. */
  async running(): Promise<void> {
    if (this.#halted) await new Promise<void>((resolve) => this.#late.add(resolve));
  }
}
