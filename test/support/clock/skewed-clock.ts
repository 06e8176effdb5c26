/** A view of another clock: it runs faster or slower, shows another date, shortens pauses, and can be halted with its process. */
import type { Clock } from '../../../src/util/clock.ts';

export interface Skew {
  /** Seconds of this clock for each second of the other clock; 1 by default. Pauses get shorter with it. */
  readonly rate?: number;
  /** Milliseconds by which the wall clock is ahead of the other clock; 0 by default. */
  readonly offset?: number;
  /** The part of its time that a pause takes, whatever the rate: 0.01 makes seconds of waiting into hundredths; 1 by default. */
  readonly pauses?: number;
}

/** Halting stops the process, not its clock: what became due in between happens at once when it goes on. */
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

  /** Sets the wall clock by so many milliseconds; the steady one does not notice. */
  jump(ms: number): void {
    this.#jumped += ms;
  }

  /** Lets so many milliseconds pass at once, on the wall clock and the steady one. Timers that run already keep their ends. */
  skip(ms: number): void {
    this.#skipped += ms;
  }

  monotonic(): number {
    return this.#base.monotonic() * this.#skew.rate + this.#skipped;
  }

  schedule(ms: number, callback: () => void): () => void {
    let waiting: (() => void) | undefined;
    const { rate, pauses } = this.#skew;
    // Whole milliseconds, as timers of Node: less than a float can add would never end.
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
