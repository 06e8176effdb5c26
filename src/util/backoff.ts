/** Computes the waiting time between retries. */
export interface BackoffOptions {
  /** Milliseconds before the first retry. */
  readonly base: number;
  /** The longest wait in milliseconds. */
  readonly cap: number;
  /** Chance in [0, 1); a parameter so that tests and the explorer can fix it. */
  readonly random: () => number;
}

/**
 * Milliseconds to wait before retry `attempt` (0 for the first): exponential with half jitter, so that the clients of a failing
 * server do not all return at once.
 */
export function backoffDelay(attempt: number, { base, cap, random }: BackoffOptions): number {
  const ceiling = Math.min(cap, base * 2 ** Math.min(attempt, 30));
  return ceiling / 2 + random() * (ceiling / 2);
}
