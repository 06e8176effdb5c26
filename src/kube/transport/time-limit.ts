/** Limits the time of one request: deadline or idle limit, the caller's abort, and the end of the client. */
import type { Clock } from '../../util/clock.ts';

/** Aborts when the time is over, the caller aborts, or `cancel` is called. Call `end()` when the request is over. */
export class TimeLimit {
  readonly #clock: Clock;
  readonly #outer: AbortSignal | undefined;
  readonly #controller = new AbortController();
  readonly #onAbort = (): void => this.cancel(new Error('aborted by the caller', { cause: this.#outer?.reason }));
  #stopTimer: () => void = () => undefined;
  #expiresAt = Number.POSITIVE_INFINITY;

  constructor(clock: Clock, outer: AbortSignal | undefined) {
    this.#clock = clock;
    this.#outer = outer;
    if (outer?.aborted) this.#onAbort();
    else outer?.addEventListener('abort', this.#onAbort, { once: true });
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
    this.#stopTimer = this.#clock.schedule(ms, () => this.cancel(new Error(complaint)));
  }

  /** Throws after the limit, even when its timer has not fired yet. */
  enforce(): void {
    if (this.remaining <= 0) this.cancel(new Error('the deadline passed before the request was sent'));
    this.abort.throwIfAborted();
  }

  cancel(reason: Error): void {
    this.#controller.abort(reason);
  }

  end(): void {
    this.#stopTimer();
    this.#outer?.removeEventListener('abort', this.#onAbort);
  }
}
