/** Owns time as a parameter: what the rest of Refit may know about clocks, and the one that real processes use. */

export interface Clock {
  /** Wall-clock milliseconds since the Unix epoch: for what people and other machines read. */
  now(): number;
  /** Milliseconds that never go back: for deadlines, ages and durations. */
  monotonic(): number;
  /** Runs `callback` once after `ms`; the returned function cancels it. Until then it keeps the process alive. */
  schedule(ms: number, callback: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  schedule(ms, callback) {
    // Node warns on standard error about a time that has passed.
    const timer = setTimeout(callback, Math.max(0, Math.min(ms, MAX_TIMER_MS)));
    return () => clearTimeout(timer);
  },
};

/** Node fires longer timers at once, so they are cut: a caller that still has to wait schedules again. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Resolves after `ms`, or rejects with the signal's reason as soon as it aborts. */
export async function sleep(clock: Clock, ms: number, abort?: AbortSignal): Promise<void> {
  abort?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const cancel = clock.schedule(ms, () => {
      abort?.removeEventListener('abort', onAbort);
      resolve();
    });
    const onAbort = (): void => {
      cancel();
      reject(asError(abort?.reason));
    };
    abort?.addEventListener('abort', onAbort, { once: true });
  });
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error('aborted', { cause: reason });
}

/** RFC 3339 with second resolution in UTC, the form Kubernetes gives to `metav1.Time`. */
export function rfc3339(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

/** RFC 3339 with milliseconds in UTC, for logs. */
export function rfc3339Millis(ms: number): string {
  return new Date(ms).toISOString();
}

/** RFC 3339 with microseconds in UTC, the only form Kubernetes accepts as `metav1.MicroTime`. */
export function microTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 23)}000Z`;
}
