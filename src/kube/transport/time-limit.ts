/** Limits how long one request may take, with an AbortSignal. */
import type { Clock } from '../../util/clock.ts';
import { onAbort } from '../../util/waits.ts';

export interface TimeLimit extends Disposable {
  /** Aborts when the time is over, or when the request is given up for another reason. */
  readonly abort: AbortSignal;
  /** The milliseconds until the time is over. They may be negative. */
  readonly remaining: number;
  /** Returns true if the time ran out before anything else aborted the request. */
  isOver(): boolean;
  /**
   * Sets the end to `ms` from now. `whenLate` is the message of the error. This is cheap to call
   * often, because a timer that fires sooner is not replaced.
   */
  allow(ms: number, whenLate: string): void;
  /** Throws if the time is over, even if the timer has not fired yet. */
  enforce(): void;
}

/**
 * Returns a limit. Its AbortSignal aborts when the time is over, the caller aborts, or the client
 * is closed. The time is unlimited until `allow` is called. Dispose of the limit when the request
 * is over.
 */
export function timeLimit(
  clock: Clock,
  outer: AbortSignal | undefined,
  closed?: AbortSignal,
): TimeLimit {
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
    isOver: () => controller.signal.reason === late,
    get remaining() {
      return expiresAt - clock.monotonic();
    },
    allow(ms, whenLate) {
      expiresAt = clock.monotonic() + ms;
      complaint = whenLate;
      if (expiresAt >= firesAt) return;
      stopTimer();
      arm();
    },
    enforce() {
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
