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

/** Each call takes a token, if need be in advance: it returns the milliseconds until that is available. */
export function createTokenBucket(clock: Clock, { perSecond, burst }: BucketSize): () => number {
  let tokens = burst;
  let filledAt = clock.monotonic();
  return () => {
    const now = clock.monotonic();
    tokens = Math.min(burst, tokens + ((now - filledAt) / 1000) * perSecond) - 1;
    filledAt = now;
    return tokens >= 0 ? 0 : (-tokens / perSecond) * 1000;
  };
}
