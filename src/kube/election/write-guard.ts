/** Lets only the leader write: the term, the writes in progress, and a client that cuts short what could overlap with a successor. */
import { type Clock, systemClock } from '../../util/clock.ts';
import { onAbort } from '../../util/waits.ts';
import type { KubeClient } from '../client.ts';
import { TransportError } from '../status-error.ts';
import { aroundRequests } from '../transport/bounded-client.ts';

/** One period of leadership. `number` grows with each change of leader; write it where a late write must be recognised. */
export interface Term {
  readonly number: number;
}

export interface GuardedWrite {
  /** Milliseconds within which the write must be over, however it ends. */
  readonly deadlineMs: number;
  /** Call it once. `known` is false when the write may still reach the server. */
  end(known: boolean): void;
}

export interface WriteGuard {
  /** Undefined as soon as another could hold the lease; asks nobody. */
  term(): Term | undefined;
  beginWrite(): GuardedWrite | undefined;
}

/** The write was refused here and never sent. A TransportError, so that callers need no further case. */
export class NotLeaderError extends TransportError {
  constructor(what: string) {
    super(`${what} refused: this process does not hold the leader lease`, { maybeApplied: false });
  }
}

/** An aborted write may still reach the server, and then the lease has to expire: so its answer gets this time to come. */
const LAST_ANSWER_MS = 3_000;

/** Reads pass. Writes need the lease, and end before another can take it. A late one must fail: give each a precondition. */
export function guardedClient(client: KubeClient, guard: WriteGuard, clock: Clock = systemClock): KubeClient {
  return aroundRequests(client, async (what, options, send) => {
    if (what === undefined) return await send(options);
    options?.abort?.throwIfAborted();
    const write = guard.beginWrite();
    if (!write) throw new NotLeaderError(what);
    using late = delayed(options?.abort, clock);
    const deadlineMs = Math.min(options?.deadlineMs ?? Number.POSITIVE_INFINITY, write.deadlineMs);
    try {
      const result = await send({ ...options, deadlineMs, abort: late.abort });
      write.end(true);
      return result;
    } catch (error) {
      write.end(!(error instanceof TransportError) || !error.maybeApplied);
      throw error;
    }
  });
}

/** Aborts some time after `abort`. */
function delayed(abort: AbortSignal | undefined, clock: Clock): Disposable & { readonly abort: AbortSignal } {
  const late = new AbortController();
  const ends = new DisposableStack();
  ends.use(onAbort(abort, () => ends.defer(clock.schedule(LAST_ANSWER_MS, () => late.abort(abort?.reason)))));
  return { abort: late.signal, [Symbol.dispose]: () => ends.dispose() };
}

export interface TermTimes {
  /** Milliseconds for which nobody else may take the lease after we renewed it. */
  readonly leaseDurationMs: number;
  /** Milliseconds after the last renewal; later than that no write begins. */
  readonly renewDeadlineMs: number;
}

/** Writes must end within this part of the lease's duration. The rest allows for clocks that run at different speeds. */
const USABLE_PART = 0.9;

/** Times are monotonic and count from *before* a renewal was sent: others can only see it later. */
export class LeadershipTerm implements WriteGuard {
  readonly #clock: Clock;
  readonly #times: TermTimes;
  #number: number | undefined;
  #renewedAt = Number.NEGATIVE_INFINITY;
  #unansweredAt = Number.NEGATIVE_INFINITY;
  readonly #running = new Set<Promise<void>>();

  constructor(clock: Clock, times: TermTimes) {
    this.#clock = clock;
    this.#times = times;
  }

  term(): Term | undefined {
    if (this.#number === undefined || this.remainingMs <= 0) return undefined;
    return { number: this.#number };
  }

  beginWrite(): GuardedWrite | undefined {
    if (!this.term()) return undefined;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#running.add(promise);
    const writableUntil = this.#renewedAt + this.#times.leaseDurationMs * USABLE_PART;
    const end = (known: boolean): void => {
      if (!known) this.#unansweredAt = this.#clock.monotonic();
      this.#running.delete(promise);
      resolve();
    };
    return { deadlineMs: writableUntil - this.#clock.monotonic(), end };
  }

  get remainingMs(): number {
    return this.#renewedAt + this.#times.renewDeadlineMs - this.#clock.monotonic();
  }

  /** Our claim, sent at `sentAt` (monotonic), is in the lease. */
  extend(number: number, sentAt: number): void {
    this.#number = number;
    this.#renewedAt = sentAt;
  }

  end(): void {
    this.#number = undefined;
  }

  /** True while a write without an answer could still reach the server: then the lease must expire by itself. */
  mayHaveLateWrite(): boolean {
    return this.#clock.monotonic() - this.#unansweredAt < this.#times.leaseDurationMs;
  }

  /** Resolves when every write in progress has ended. Each one ends before another can take the lease. */
  async settled(): Promise<void> {
    await Promise.all(this.#running);
  }
}
