/** Limits how long work takes. */
import type { Clock } from './clock.ts';
import { untilAborted } from './waits.ts';

export interface WorkLimit {
  readonly ms: number;
  /** The error with which the result rejects when the time is over. */
  readonly late: Error;
  /** If this signal aborts, the signal of the work aborts, too. */
  readonly stop?: AbortSignal;
}

/**
 * Settles like `work`. When the time is over, it rejects with `late`, and the signal of the work aborts. The caller
 * does not wait for work that ignores its signal.
 */
export async function within<T>(
  clock: Pick<Clock, 'schedule'>,
  { ms, late, stop }: WorkLimit,
  work: (abort: AbortSignal) => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const cancel = clock.schedule(ms, () => over.abort(late));
  const abort = stop === undefined ? over.signal : AbortSignal.any([over.signal, stop]);
  try {
    return await untilAborted(work(abort), over.signal);
  } catch (error) {
    throw over.signal.aborted ? late : error;
  } finally {
    cancel();
  }
}
