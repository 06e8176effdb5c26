/** Owns the two clocks of a download attempt: how long nothing may arrive, and how long it may take at all. */
import type { Clock } from '../../util/clock.ts';
import { TransientError } from './http-get.ts';

export interface GuardLimits {
  readonly stallMs: number;
  readonly remainingMs: number;
}

export class StallGuard implements Disposable {
  /** Aborts with a TransientError after a stall, with an Error where the time is up, and with its parent. */
  readonly abort: AbortSignal;
  readonly #own = new AbortController();
  readonly #clock: Clock;
  readonly #stallMs: number;
  readonly #cancelTotal: () => void;
  #cancelStall: () => void = () => undefined;

  constructor({ stallMs, remainingMs }: GuardLimits, clock: Clock, parent: AbortSignal) {
    this.#clock = clock;
    this.#stallMs = stallMs;
    this.abort = AbortSignal.any([parent, this.#own.signal]);
    const tooLong = (): void => this.#own.abort(new Error('the download took too long'));
    this.#cancelTotal = clock.schedule(Math.max(0, remainingMs), tooLong);
    this.touch();
  }

  /** Something arrived. */
  touch(): void {
    this.#cancelStall();
    this.#cancelStall = this.#clock.schedule(this.#stallMs, () =>
      this.#own.abort(new TransientError(`nothing was received for ${this.#stallMs / 1000} s`)),
    );
  }

  [Symbol.dispose](): void {
    this.#cancelTotal();
    this.#cancelStall();
  }
}
