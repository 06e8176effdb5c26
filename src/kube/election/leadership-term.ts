/** Owns how long we may act as leader: one term, the writes under way in it, and the doubt that a lost answer leaves. */
import type { Clock } from '../../util/clock.ts';
import type { Held, SignalOrigin, WritePermission } from './write-guard.ts';

export interface TermTimes {
  /** Milliseconds for which nobody else may take the lease after we renewed it. */
  readonly leaseDurationMs: number;
  /** Milliseconds after the last renewal from which on we no longer begin anything. */
  readonly renewDeadlineMs: number;
}

/** Part of the lease's duration in which writes must end: the rest absorbs clocks that do not run equally fast. */
const USABLE_PART = 0.9;

/** All times are monotonic and count from the moment *before* a renewal was sent, which others can only see later. */
export class LeadershipTerm implements SignalOrigin {
  readonly #clock: Clock;
  readonly #times: TermTimes;
  #fencing: number | undefined;
  #renewedAt = Number.NEGATIVE_INFINITY;
  #running = 0;
  #doubtAt = Number.NEGATIVE_INFINITY;
  readonly #idle = new Set<() => void>();

  constructor(clock: Clock, times: TermTimes) {
    this.#clock = clock;
    this.#times = times;
  }

  held(): Held | undefined {
    if (this.#fencing === undefined || this.remainingMs <= 0) return undefined;
    return { fencing: this.#fencing };
  }

  permit(): WritePermission | undefined {
    if (!this.held()) return undefined;
    this.#running++;
    return { deadlineMs: this.#writableUntil() - this.#clock.monotonic(), end: (known) => this.#end(known) };
  }

  /** Milliseconds until the term ends unless it is renewed. */
  get remainingMs(): number {
    return this.#renewedAt + this.#times.renewDeadlineMs - this.#clock.monotonic();
  }

  /** Our claim, sent at `sentAt` (monotonic), is in the lease. */
  extend(fencing: number, sentAt: number): void {
    this.#fencing = fencing;
    this.#renewedAt = sentAt;
  }

  /** No write begins from now on. */
  end(): void {
    this.#fencing = undefined;
  }

  /** True where a write without an answer could reach the server even now: then the lease must run out by itself. */
  inDoubt(): boolean {
    return this.#clock.monotonic() - this.#doubtAt < this.#times.leaseDurationMs;
  }

  /** Resolves once every write that was under way has ended; each does so before the lease can be taken. */
  async settled(): Promise<void> {
    if (this.#running > 0) await new Promise<void>((resolve) => this.#idle.add(resolve));
  }

  #end(known: boolean): void {
    this.#running--;
    if (!known) this.#doubtAt = this.#clock.monotonic();
    if (this.#running > 0) return;
    for (const resolve of this.#idle) resolve();
    this.#idle.clear();
  }

  #writableUntil(): number {
    return this.#renewedAt + this.#times.leaseDurationMs * USABLE_PART;
  }
}
