/** Limits how long one request may take, as a signal that aborts. */
import type { Clock } from '../../util/clock.ts';
import { onAbort } from '../../util/waits.ts';

/** Returns a limit whose signal aborts when the time is over, the caller aborts, or the client was closed. It has no end until `allow` is called. Dispose of it when the request is over. */
export function timeLimit(clock: Clock, outer: AbortSignal | undefined, closed?: AbortSignal) {
  const controller = new AbortController();
  const listening = new DisposableStack();
  const byCaller = (): void =>
    controller.abort(new Error('aborted by the caller', { cause: outer?.reason }));
  listening.use(onAbort(outer, byCaller));
  listening.use(onAbort(closed, () => controller.abort(new Error('the client was closed'))));
  let stopTimer = (): void => undefined;
  let expiresAt = Infinity;
  let firesAt = Infinity;
  let complaint = '';
  let late: Error | null = null;
  const arm = (): void => {
    firesAt = expiresAt;
    stopTimer = clock.schedule(expiresAt - clock.monotonic(), () => {
      if (expiresAt > clock.monotonic()) arm();
      else {
        late = new Error(complaint);
        controller.abort(late);
      }
    });
  };
  return {
    abort: controller.signal,
    /** True if the time ran out, and nobody gave up before. */
    isOver: () => controller.signal.reason === late,
    get remaining() {
      return expiresAt - clock.monotonic();
    },
    /** Allows `ms` from now, instead of any earlier limit. Costs little: a timer that fires sooner is left as it is. */
    allow(ms: number, whenLate: string): void {
      expiresAt = clock.monotonic() + ms;
      complaint = whenLate;
      if (expiresAt >= firesAt) return;
      stopTimer();
      arm();
    },
    /** Throws after the limit, even when its timer has not fired yet. */
    enforce(): void {
      if (this.remaining <= 0)
        controller.abort(new Error('the deadline passed before the request was sent'));
      controller.signal.throwIfAborted();
    },
    [Symbol.dispose](): void {
      stopTimer();
      listening.dispose();
    },
  };
}

export type TimeLimit = ReturnType<typeof timeLimit>;
