/** The waiting time between retries, and a limit for a rate with a reserve for bursts. */
import type { Clock } from './clock.ts';

export interface BackoffOptions {
  /** Milliseconds before the first retry. */
  readonly base: number;
  readonly cap: number;
  /** Chance in [0, 1); a parameter so that tests and the explorer can fix it. */
  readonly random: () => number;
}

/** Milliseconds before retry `attempt` (0 first): exponential with half jitter, so that clients do not return together. */
export function backoffDelay(attempt: number, { base, cap, random }: BackoffOptions): number {
  const ceiling = Math.min(cap, base * 2 ** Math.min(attempt, 30));
  return ceiling / 2 + random() * (ceiling / 2);
}

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
