/** Limits a rate, with a reserve for bursts. */
import type { Clock } from './clock.ts';

export interface BucketSize {
  readonly perSecond: number;
  readonly burst: number;
}

export class TokenBucket {
  readonly #clock: Clock;
  readonly #size: BucketSize;
  #tokens: number;
  #filledAt: number;

  constructor(clock: Clock, size: BucketSize) {
    this.#clock = clock;
    this.#size = size;
    this.#tokens = size.burst;
    this.#filledAt = clock.monotonic();
  }

  /** Takes a token, if need be in advance: returns the milliseconds until it is available. */
  take(): number {
    const now = this.#clock.monotonic();
    const gained = ((now - this.#filledAt) / 1000) * this.#size.perSecond;
    this.#tokens = Math.min(this.#size.burst, this.#tokens + gained) - 1;
    this.#filledAt = now;
    return this.#tokens >= 0 ? 0 : (-this.#tokens / this.#size.perSecond) * 1000;
  }
}
