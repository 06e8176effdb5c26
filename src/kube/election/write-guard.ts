/**
 * Lets only the leader write. Keeps track of the term and of the writes in progress, and ends writes that could overlap
 * with writes of the next leader.
 */
import { type Clock, systemClock } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import type { Logger } from '../../util/log.ts';
import { onAbort } from '../../util/waits.ts';
import type { KubeClient } from '../client.ts';
import { TransportError } from '../status-error.ts';
import { aroundRequests } from '../transport/bounded-client.ts';

/**
 * One period of leadership. `number` grows with each change of leader. This number is the fencing token: the leader
 * must write it into each object in which a late write must be recognized.
 */
export interface Term {
  readonly number: number;
}

/** One write that the leader has begun. */
export interface GuardedWrite {
  /** Milliseconds within which the write must end, with or without success. */
  readonly deadlineMs: number;
  /** The caller must call this once, when the write has ended. `known` is false if the write may still reach the server. */
  end(known: boolean): void;
}

/** Says whether this process may write. */
export interface WriteGuard {
  /** Returns our term; undefined as soon as another process could hold the lease. It sends no request. */
  readonly term: () => Term | undefined;
  /** Registers a write. Returns undefined if this process does not lead. */
  readonly beginWrite: () => GuardedWrite | undefined;
}

/**
 * Milliseconds that an aborted write still waits for its answer. Without the answer, the write may still reach the server later, and the
 * lease has to expire before another process may lead.
 */
const LAST_ANSWER_MS = 3_000;

/**
 * Returns a client that writes only while this process holds the lease. A write ends before another
 * process can take the lease. A write that still arrives later must fail, so give each write a
 * precondition. Reads are not limited.
 */
export function guardedClient(
  client: KubeClient,
  guard: WriteGuard,
  clock: Clock = systemClock,
): KubeClient {
  return aroundRequests(client, async (what, options, send) => {
    if (what === undefined) return await send(options);
    options?.abort?.throwIfAborted();
    const write = guard.beginWrite();
    // A process that does not lead gets a TransportError, so that callers need no code for another kind of error.
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
  /** Milliseconds after a renewal of the lease in which no other process may take it. */
  readonly leaseDurationMs: number;
  /** How many milliseconds after a renewal of the lease a write may still begin. */
  readonly renewDeadlineMs: number;
}

/**
 * The share of the lease duration within which writes must end. The rest of the duration allows for clocks that run at different speeds.
 */
const USABLE_PART = 0.9;

/**
 * The election calls this function with the term when a term of this process begins, and with undefined when the term
 * ends.
 */
export type TermListener = (term: Term | undefined) => void;

/** Knows whether this process leads, and which of its writes have not ended. */
export interface LeadershipTerm extends WriteGuard {
  /** Returns true from `won` until the term is lost. */
  isLeading(): boolean;
  /** Returns the milliseconds until the term ends, unless the lease is renewed. */
  remainingMs(): number;
  /**
   * The election calls this when the server has accepted our claim on the lease. `sentAt` is the monotonic time in milliseconds at which
   * the claim was sent.
   */
  won(number: number, sentAt: number): void;
  /** Ends the term, if there is one. */
  lost(why: string): void;
  /** Calls `listener` at each begin and end of a term. The returned function unsubscribes. */
  readonly onChange: (listener: TermListener) => () => void;
  /**
   * Returns true while a write without an answer could still reach the server. The lease must then
   * expire by itself.
   */
  mayHaveLateWrite(): boolean;
  /**
   * Resolves when every write in progress has ended. Each write ends before another process can
   * take the lease.
   */
  settled(): Promise<void>;
}

/**
 * Returns a term that has not begun. Its times are monotonic. They count from the moment *before* a renewal was sent,
 * because other processes can only read the renewal later.
 */
export function leadershipTerm(
  clock: Clock,
  { leaseDurationMs, renewDeadlineMs }: TermTimes,
  log: Logger,
): LeadershipTerm {
  const listeners = new Set<TermListener>();
  const running = new Set<Promise<void>>();
  let current: Term | undefined;
  let renewedAt = Number.NEGATIVE_INFINITY;
  /** The time at which the last write with an unknown result ended, in monotonic milliseconds. */
  let unansweredAt = Number.NEGATIVE_INFINITY;
  let stopExpiry = (): void => undefined;
  const remainingMs = (): number => renewedAt + renewDeadlineMs - clock.monotonic();
  /** Returns the monotonic milliseconds by which every write must have ended. */
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
    won(number, sentAt) {
      stopExpiry();
      renewedAt = sentAt;
      // The answer to the renewal may have arrived after the end of the term.
      if (remainingMs() <= 0) return lost('the lease was renewed too late');
      const wasLeading = current !== undefined;
      current = { number };
      stopExpiry = clock.schedule(remainingMs(), () => lost('the lease was not renewed'));
      if (wasLeading) return;
      log.info('leading', { term: number });
      notify();
    },
    onChange(listener: TermListener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    beginWrite() {
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
    mayHaveLateWrite: () => clock.monotonic() - unansweredAt < leaseDurationMs,
    settled: async () => void (await Promise.all(running)),
  };
}
