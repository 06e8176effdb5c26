/** Limits the time of a call: to the caller's timeout, and to the configured maximum. */
import type { Clock } from '../../util/clock.ts';
import { parseGoDuration } from '../../util/go-duration.ts';

/** Milliseconds reserved for sending the answer before the caller gives up. */
const TRAVEL_MS = 500;
const LEAST_MS = 100;

/** Milliseconds in which to answer; `granted` is the value of `?timeout=`, a Go duration. */
export function answerWithin(granted: string | null, limitMs: number): number {
  const ms = (parseGoDuration(granted ?? '') ?? 0) / 1e6;
  return Math.max(LEAST_MS, (ms > 0 ? Math.min(ms, limitMs) : limitMs) - TRAVEL_MS);
}

/** The result of `work`; or that of `late` after `ms` milliseconds, and `work` is aborted. */
export async function within<T>(
  clock: Clock,
  ms: number,
  work: (abort: AbortSignal) => Promise<T>,
  late: () => T,
): Promise<T> {
  const time = new AbortController();
  const over = Promise.withResolvers<T>();
  const cancel = clock.schedule(ms, () => {
    over.resolve(late());
    time.abort(new Error('the time to answer is over'));
  });
  try {
    return await Promise.race([work(time.signal), over.promise]);
  } finally {
    cancel();
  }
}
