/** Lets only the leader write: the term, the writes in progress, and a client that cuts short what could overlap with a successor. */
import { type Clock, systemClock } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import type { Logger } from '../../util/log.ts';
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

/** An aborted write may still reach the server, and then the lease has to expire: so its answer gets this time to come. */
const LAST_ANSWER_MS = 3_000;

/** Reads pass. Writes need the lease, and end before another can take it. A late one must fail: give each a precondition. */
export function guardedClient(
  client: KubeClient,
  guard: WriteGuard,
  clock: Clock = systemClock,
): KubeClient {
  return aroundRequests(client, async (what, options, send) => {
    if (what === undefined) return await send(options);
    options?.abort?.throwIfAborted();
    const write = guard.beginWrite();
    // A TransportError, so that callers need no further case.
    if (!write)
      throw new TransportError(`${what} refused: this process does not hold the leader lease`, {
        maybeApplied: false,
      });
    const abort = options?.abort;
    const late = new AbortController();
    using ends = new DisposableStack();
    const endSoon = (): void => {
      const cancel = clock.schedule(LAST_ANSWER_MS, () => late.abort(abort?.reason));
      ends.defer(cancel);
    };
    ends.use(onAbort(abort, endSoon));
    const deadlineMs = Math.min(options?.deadlineMs ?? Number.POSITIVE_INFINITY, write.deadlineMs);
    try {
      const result = await send({ ...options, deadlineMs, abort: late.signal });
      write.end(true);
      return result;
    } catch (error) {
      const mayArriveLate = error instanceof TransportError && error.maybeApplied;
      write.end(!mayArriveLate);
      throw error;
    }
  });
}

export interface TermTimes {
  /** Milliseconds for which nobody else may take the lease after we renewed it. */
  readonly leaseDurationMs: number;
  /** Milliseconds after the last renewal; later than that no write begins. */
  readonly renewDeadlineMs: number;
}

/** Writes must end within this part of the lease's duration. The rest allows for clocks that run at different speeds. */
const USABLE_PART = 0.9;

export type LeadershipTerm = ReturnType<typeof leadershipTerm>;

/** Times are monotonic and count from *before* a renewal was sent: others can only see it later. */
export function leadershipTerm(
  clock: Clock,
  { leaseDurationMs, renewDeadlineMs }: TermTimes,
  log: Logger,
) {
  const listeners = new Set<(term: Term | undefined) => void>();
  const running = new Set<Promise<void>>();
  let current: Term | undefined;
  let renewedAt = Number.NEGATIVE_INFINITY;
  /** When the last write ended whose fate is unknown. */
  let unansweredAt = Number.NEGATIVE_INFINITY;
  let stopExpiry = (): void => undefined;
  const remainingMs = (): number => renewedAt + renewDeadlineMs - clock.monotonic();
  /** Monotonic milliseconds by which every write must have ended. */
  const writableUntil = (): number => renewedAt + leaseDurationMs * USABLE_PART;
  const term = (): Term | undefined => (remainingMs() > 0 ? current : undefined);
  const notify = (): void => {
    for (const listener of listeners) {
      try {
        listener(current);
      } catch (error) {
        log.error('a listener of the election failed', { problem: messageOf(error) });
      }
    }
  };
  const lost = (why: string): void => {
    stopExpiry();
    if (!current) return;
    current = undefined;
    log.info('no longer leading', { why });
    notify();
  };
  return {
    term,
    remainingMs,
    lost,
    isLeading: () => current !== undefined,
    /** Our claim, sent at `sentAt` (monotonic), is in the lease. */
    won(number: number, sentAt: number): void {
      stopExpiry();
      renewedAt = sentAt;
      // A late answer may arrive after the end of the term.
      if (remainingMs() <= 0) return lost('the lease was renewed too late');
      const wasLeading = current !== undefined;
      current = { number };
      stopExpiry = clock.schedule(remainingMs(), () => lost('the lease was not renewed'));
      if (wasLeading) return;
      log.info('leading', { term: number });
      notify();
    },
    /** Calls `listener` when a term of ours begins, and with undefined when it ends; the returned function unsubscribes. */
    onChange: (listener: (term: Term | undefined) => void): (() => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    beginWrite: (): GuardedWrite | undefined => {
      if (!term()) return undefined;
      const { promise, resolve } = Promise.withResolvers<void>();
      running.add(promise);
      const end = (known: boolean): void => {
        if (!known) unansweredAt = clock.monotonic();
        running.delete(promise);
        resolve();
      };
      return { deadlineMs: writableUntil() - clock.monotonic(), end };
    },
    /** True while a write without an answer could still reach the server: then the lease must expire by itself. */
    mayHaveLateWrite: () => clock.monotonic() - unansweredAt < leaseDurationMs,
    /** Resolves when every write in progress has ended. Each one ends before another can take the lease. */
    settled: async () => void (await Promise.all(running)),
  };
}
