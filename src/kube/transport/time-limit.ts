/** Limits the time of one request: deadline or idle limit, the caller's abort, and the end of the client. */
import type { Clock } from '../../util/clock.ts';
import { onAbort } from '../../util/waits.ts';

/** Aborts when the time is over, the caller aborts, or the client was closed. Dispose of it when the request is over. */
export function timeLimit(clock: Clock, outer: AbortSignal | undefined, closed?: AbortSignal) {
  const controller = new AbortController();
  const listening = new DisposableStack();
  const byCaller = (): void => controller.abort(new Error('aborted by the caller', { cause: outer?.reason }));
  listening.use(onAbort(outer, byCaller));
  listening.use(onAbort(closed, () => controller.abort(new Error('the client was closed'))));
  let stopTimer = (): void => undefined;
  let expiresAt = Number.POSITIVE_INFINITY;
  return {
    abort: controller.signal,
    get remaining() {
      return expiresAt - clock.monotonic();
    },
    /** Allows `ms` from now, instead of any earlier limit. */
    allow(ms: number, complaint: string): void {
      stopTimer();
      expiresAt = clock.monotonic() + ms;
      stopTimer = clock.schedule(ms, () => controller.abort(new Error(complaint)));
    },
    /** Throws after the limit, even when its timer has not fired yet. */
    enforce(): void {
      if (this.remaining <= 0) controller.abort(new Error('the deadline passed before the request was sent'));
      controller.signal.throwIfAborted();
    },
    [Symbol.dispose](): void {
      stopTimer();
      listening.dispose();
    },
  };
}

export type TimeLimit = ReturnType<typeof timeLimit>;
