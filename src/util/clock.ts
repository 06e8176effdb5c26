/**
 * Defines the clock that code gets as a parameter. Also defines pauses, retry delays, rate limits, and the text form of
 * times.
 */
import { untilAborted } from './waits.ts';

/** The clock that code gets as a parameter. */
export interface MonotonicClock {
  /** Returns milliseconds that never go back, for deadlines, ages and durations. */
  monotonic(): number;
}

export interface Clock extends MonotonicClock {
  /** Returns wall-clock milliseconds since the Unix epoch, for people and other machines. */
  now(): number;
  /**
   * Runs `callback` once after `ms`. The returned function cancels it. A scheduled callback keeps
   * the process alive.
   */
  schedule(ms: number, callback: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  schedule(ms, callback) {
    const waitFor = (left: number): NodeJS.Timeout => {
      const waitForRest = (): void => {
        timer = waitFor(left - MAX_TIMER_MS);
      };
      const next = left > MAX_TIMER_MS ? waitForRest : callback;
      // Node.js warns on standard error about negative times.
      return setTimeout(next, Math.max(0, Math.min(left, MAX_TIMER_MS)));
    };
    let timer = waitFor(ms);
    return () => clearTimeout(timer);
  },
};

/** The most milliseconds that a timer of Node.js can wait. A longer timer would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Resolves after `ms`, or rejects with the reason of `abort` as soon as it aborts. */
export async function sleep(clock: Clock, ms: number, abort?: AbortSignal): Promise<void> {
  abort?.throwIfAborted();
  const { promise, resolve } = Promise.withResolvers<void>();
  const cancel = clock.schedule(ms, resolve);
  await untilAborted(promise, abort).finally(cancel);
}

export interface BackoffOptions {
  /** The most milliseconds before the first retry. */
  readonly base: number;
  readonly cap: number;
  /**
   * Returns a random number in [0, 1). It is a parameter so that tests and the explorer can fix it.
   */
  readonly random: () => number;
}

/**
 * Returns the milliseconds before a retry. `attempt` starts at 0. The delay grows exponentially,
 * and half of it is random, so that clients do not retry together.
 */
export function backoffDelay(attempt: number, { base, cap, random }: BackoffOptions): number {
  const ceiling = Math.min(cap, base * 2 ** Math.min(attempt, 30));
  return ceiling / 2 + random() * (ceiling / 2);
}

/**
 * Returns a function that takes one token at each call and returns the milliseconds until this token is available. If
 * no token is available, the function takes the next token in advance.
 */
export function createTokenBucket(
  clock: Clock,
  rate: { readonly perSecond: number; readonly burst: number },
) {
  const { perSecond, burst } = rate;
  let tokens = burst;
  let filledAt = clock.monotonic();
  return (): number => {
    const now = clock.monotonic();
    tokens = Math.min(burst, tokens + ((now - filledAt) / 1000) * perSecond) - 1;
    filledAt = now;
    return tokens >= 0 ? 0 : (-tokens / perSecond) * 1000;
  };
}

export const DAY_MS = 86_400_000;

/**
 * Returns the same text as `Date.prototype.toISOString`. It does not use Date, because Date loads all time zones, which
 * takes 1 MiB in each agent.
 */
export function isoTime(ms: number): string {
  if (!(ms >= 0 && ms <= LAST_MS)) return new Date(ms).toISOString();
  // Days are counted from 1 March 0000, so that a leap day is the last day of its year. A period of
  // 400 years has 146,097 days.
  const days = Math.floor(ms / DAY_MS) + 719_468;
  const century = Math.floor((days + 0.75) / 36_524.25);
  const year = Math.floor((days + century - Math.floor(century / 4) + 0.75) / 365.25);
  const ofYear = days - Math.floor(year * 365.25) + century - Math.floor(century / 4);
  const month = Math.floor((5 * ofYear + 2) / 153);
  const day = ofYear - Math.floor((153 * month + 2) / 5) + 1;
  const pad = (value: number, digits = 2): string =>
    String(Math.floor(value)).padStart(digits, '0');
  const date = month < 10 ? `${year}-${pad(month + 3)}` : `${year + 1}-${pad(month - 9)}`;
  const time = `${pad((ms / 3_600_000) % 24)}:${pad((ms / 60_000) % 60)}:${pad((ms / 1000) % 60)}`;
  return `${date}-${pad(day)}T${time}.${pad(ms % 1000, 3)}Z`;
}

const FIRST_MS = Date.parse('0000-01-01T00:00:00Z');
const LAST_MS = Date.parse('9999-12-31T23:59:59Z');

/**
 * Returns the time in RFC 3339, in UTC with seconds, like `metav1.Time`. Years have four digits. A time outside of this
 * range, which a node may have written, becomes the first or the last time in the range.
 */
export function rfc3339(ms: number): string {
  return `${isoTime(Math.max(FIRST_MS, Math.min(ms, LAST_MS))).slice(0, 19)}Z`;
}

/** Returns the time in RFC 3339, in UTC with microseconds, as `metav1.MicroTime` requires. */
export function microTime(ms: number): string {
  return `${isoTime(ms).slice(0, 23)}000Z`;
}
