/** A clock for tests. Its time moves only when a test moves it, or, if the test chooses this, with every wait. */
import type { Clock } from '../../../src/util/clock.ts';

interface Timer {
  readonly at: number;
  readonly callback: () => void;
}

interface FakeClockOptions {
  /** Whether a timer moves the time to its own end and fires at once, so that no wait takes time; false by default. */
  readonly skipsWaits?: boolean;
  /** Waits until the work that a timer has started is done; by default, until no promise can continue. */
  readonly settle?: () => Promise<void>;
}

export class FakeClock implements Clock {
  #epoch: number;
  readonly #skipsWaits: boolean;
  readonly #settle: () => Promise<void>;
  #elapsed = 0;
  #timers: Timer[] = [];

  /** `epoch` is the wall clock's start in milliseconds; the monotonic clock starts at 0. */
  constructor(epoch = Date.UTC(2026, 0, 1), options: FakeClockOptions = {}) {
    this.#epoch = epoch;
    this.#skipsWaits = options.skipsWaits ?? false;
    this.#settle = options.settle ?? settle;
  }

  /** Returns whole milliseconds, as the clock of the machine does. Timers with random delays fire between them. */
  now(): number {
    return Math.floor(this.#epoch + this.#elapsed);
  }

  monotonic(): number {
    return this.#elapsed;
  }

  schedule(ms: number, callback: () => void): () => void {
    if (this.#skipsWaits) {
      this.#elapsed += ms;
      queueMicrotask(callback);
      return () => undefined;
    }
    const timer = { at: this.#elapsed + Math.max(0, ms), callback };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** Sets the wall clock back. The monotonic clock and the timers do not change. */
  setBack(ms: number): void {
    this.#epoch -= ms;
  }

  /** How many timers wait. */
  get pending(): number {
    return this.#timers.length;
  }

  /**
   * Moves the time by `ms`. Each timer that is due until then fires at its own time. All work that the timer starts
   * runs before the next timer fires.
   */
  async advance(ms: number): Promise<void> {
    const end = this.#elapsed + ms;
    await this.#settle();
    for (let next = this.#next(end); next; next = this.#next(end)) {
      this.#elapsed = Math.max(this.#elapsed, next.at);
      this.#timers = this.#timers.filter((timer) => timer !== next);
      next.callback();
      await this.#settle();
    }
    this.#elapsed = end;
  }

  /** Moves on second by second until `work` is settled. */
  async runUntil<T>(work: Promise<T>): Promise<T> {
    const progress = { over: false };
    const end = (): void => {
      progress.over = true;
    };
    work.then(end, end);
    while (!progress.over) await this.advance(1_000);
    return await work;
  }

  #next(end: number): Timer | undefined {
    const due = this.#timers.filter(({ at }) => at <= end);
    // Timers with the same time keep the order in which they were set.
    return due.toSorted((a, b) => a.at - b.at)[0];
  }
}

/** Waits until no promise can continue any more. A macrotask runs after all microtasks. */
export async function settle(): Promise<void> {
  await new Promise<void>((resolve) => {
    setImmediate(resolve);
  });
}
