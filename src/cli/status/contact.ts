/** Owns the memory of whether the API server answers: a watch that lost it shows what was, and must say so. */
import { type Clock, rfc3339 } from '../../util/clock.ts';

export class Contact {
  readonly #clock: Clock;
  #lostAt: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes the outcome of one request; `code` is 0 where no answer came. */
  note({ code }: { readonly code: number }): void {
    this.#lostAt = code === 0 ? (this.#lostAt ?? this.#clock.now()) : undefined;
  }

  /** RFC 3339: since when no request was answered; undefined where the last one was. */
  get silentSince(): string | undefined {
    return this.#lostAt === undefined ? undefined : rfc3339(this.#lostAt);
  }
}
