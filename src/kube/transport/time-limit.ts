/** Limits the time of one request: deadline or idle limit, the caller's abort, and the end of the client. */
import type { Clock } from '../../util/clock.ts';
import { onAbort } from '../../util/waits.ts';

/** Aborts when the time is over, the caller aborts, or the client was closed. Dispose of it when the request is over. */
export class TimeLimit implements Disposable {
  readonly #clock: Clock;
  readonly #controller = new AbortController();
  readonly #listening = new DisposableStack();
  #stopTimer: () => void = () => undefined;
  #expiresAt = Number.POSITIVE_INFINITY;

  constructor(clock: Clock, outer: AbortSignal | undefined, closed?: AbortSignal) {
    this.#clock = clock;
    this.#listening.use(
      onAbort(outer, () => this.#controller.abort(new Error('aborted by the caller', { cause: outer?.reason }))),
    );
    this.#listening.use(onAbort(closed, () => this.#controller.abort(new Error('the client was closed'))));
  }

  get abort(): AbortSignal {
    return this.#controller.signal;
  }

  get remaining(): number {
    return this.#expiresAt - this.#clock.monotonic();
  }

  /** Allows `ms` from now, instead of any earlier limit. */
  allow(ms: number, complaint: string): void {
    this.#stopTimer();
    this.#expiresAt = this.#clock.monotonic() + ms;
    this.#stopTimer = this.#clock.schedule(ms, () => this.#controller.abort(new Error(complaint)));
  }

  /** Throws after the limit, even when its timer has not fired yet. */
  enforce(): void {
    if (this.remaining <= 0) this.#controller.abort(new Error('the deadline passed before the request was sent'));
    this.abort.throwIfAborted();
  }

  [Symbol.dispose](): void {
    this.#stopTimer();
    this.#listening.dispose();
  }
}
