/** Owns how long one request may last: its deadline or idle limit, the caller's abort signal, and the client's end. */
import type { Clock } from '../../util/clock.ts';

/** Aborts its `signal` at the first of: time over, the caller's signal, `cancel`. Must be ended with `end()`. */
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

  /** Milliseconds that are left, zero or less once the limit is reached. */
  get remaining(): number {
    return this.#expiresAt - this.#clock.monotonic();
  }

  /** Gives `ms` from now on, in place of any earlier limit. */
  allow(ms: number, complaint: string): void {
    this.#stopTimer();
    this.#expiresAt = this.#clock.monotonic() + ms;
    this.#stopTimer = this.#clock.schedule(ms, () => this.cancel(new Error(complaint)));
  }

  /** Throws where the limit is reached, also where the timer could not say so yet. */
  enforce(): void {
    if (this.remaining <= 0) this.cancel(new Error('the time was over before the request could be sent'));
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
