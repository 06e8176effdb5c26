/**
 * Elects a leader by a Lease. There is one holder at a time, and only locally observed time decides
 * when a lease expires.
 */
import { sleep } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import type { Logger } from '../../util/log.ts';
import { DEFAULT_TOOLS, type Tools } from '../../util/tools.ts';
import type { Lease } from '../resources.ts';
import { isVerdict, type StatusError } from '../status-error.ts';
import { type Claim, renewed, taken, transitionsOf } from './lease-record.ts';
import { type LeaseIdentity, type ObservedLease, observedLease } from './observed-lease.ts';
import {
  type LeadershipTerm,
  leadershipTerm,
  type TermListener,
  type TermTimes,
  type WriteGuard,
} from './write-guard.ts';

/**
 * Times are in whole seconds, because a Lease has no finer unit. The defaults are those of
 * client-go: 15 s, 10 s and 2 s.
 */
export interface ElectionOptions extends LeaseIdentity, Partial<Tools>, Partial<ElectionTimes> {}

export interface ElectionTimes extends TermTimes {
  /** Milliseconds between two attempts of a leader. A candidate waits at least this long between two attempts. */
  readonly retryPeriodMs: number;
}

/**
 * The abort reason for a candidacy whose work has not ended. The lease is then not released, and
 * nobody else can lead before it expires.
 */
export const NOT_RELEASED = Symbol('not released');

/**
 * Returns the times for a lease duration. Renewal may take two thirds of the duration, which leaves
 * time for five attempts.
 */
export function timesOf(leaseDurationMs: number): ElectionTimes {
  const renewDeadlineMs = (leaseDurationMs * 2) / 3;
  return { leaseDurationMs, renewDeadlineMs, retryPeriodMs: renewDeadlineMs / 5 };
}

/** One candidate for a lease. */
export interface Election extends WriteGuard {
  /** The name of the lease. */
  readonly name: string;
  /** The name of this candidate in the lease. */
  readonly identity: string;
  /**
   * Calls `listener` with each term of this candidate when it begins, and with undefined when it
   * ends. The returned function unsubscribes.
   */
  readonly onChange: (listener: TermListener) => () => void;
  /** Returns the holder of the Lease at the time of the last read; empty if the Lease had no holder. */
  readonly leader: () => string;
  /**
   * Returns the last answer of the server if the server refuses access to the lease, for example because a right or the
   * namespace is missing. Otherwise returns undefined.
   */
  readonly refusal: () => StatusError | undefined;
  /**
   * Tries to become and stay the leader until `abort`. Then it waits for its writes and releases the
   * lease, unless a write may still arrive or the reason of `abort` is NOT_RELEASED.
   */
  run(abort: AbortSignal): Promise<void>;
}

/** Returns a candidate, which sends no request before `run`. It throws a RangeError if the times do not fit together. */
export function createElection(options: ElectionOptions): Election {
  const all = { ...DEFAULT_TOOLS, ...timesOf(15_000), ...options };
  const { name, namespace, identity, clock } = all;
  assertOrdered(all);
  const log = all.log.child({ lease: name, identity });
  const lease = observedLease(all);
  const leadership = leadershipTerm(clock, all, log);
  let refusal: StatusError | undefined;
  /** Reads the lease. It ends our leadership if the lease is no longer ours. */
  const refresh = async (abort?: AbortSignal): Promise<void> => {
    await lease.read(abort);
    if (!lease.exists()) leadership.lost('the lease was deleted');
    else if (!lease.ours()) leadership.lost('another process took the lease');
  };
  const write = async (next: (claim: Claim) => Lease): Promise<void> => {
    const sentAt = clock.monotonic();
    leadership.won(transitionsOf(await lease.write(next)), sentAt);
  };
  const prolong = async (): Promise<void> => {
    const ours = lease.ours();
    if (ours) await write((claim) => renewed(ours, claim));
    else leadership.lost('another process holds the lease');
  };
  const acquire = async (abort: AbortSignal): Promise<void> => {
    await refresh(abort);
    if (lease.freeInMs() > 0) return;
    if (lease.ours()) await prolong();
    else await write((claim) => taken(lease.last(), { name, namespace }, claim));
  };
  const renew = async (): Promise<void> => {
    try {
      await prolong();
    } catch (error) {
      if (!lease.hasChanged(error)) throw error;
      // The conflict may come from a changed label, or from an earlier claim that arrived although
      // its answer was lost. So the lease is read, and the claim is tried once more.
      await refresh();
      if (leadership.isLeading()) await prolong();
    }
  };
  /**
   * Makes one attempt to get or keep the lease. It resolves with the milliseconds until the next
   * attempt.
   */
  const step = async (abort: AbortSignal): Promise<number> => {
    try {
      await (leadership.isLeading() ? renew() : acquire(abort));
      refusal = undefined;
    } catch (error) {
      const isRoutine = lease.hasChanged(error) || abort.aborted;
      refusal = isVerdict(error) && !isRoutine ? error : undefined;
      const what = refusal ? 'the server refuses the lease' : 'cannot reach the lease';
      if (!isRoutine) log.warn(what, { problem: messageOf(error) });
      if (leadership.isLeading()) return pauseOf(all).afterFailure(leadership.remainingMs());
    }
    return leadership.isLeading() ? all.retryPeriodMs : pauseOf(all).ofCandidate(lease.freeInMs());
  };
  return {
    name,
    identity,
    term: leadership.term,
    beginWrite: leadership.beginWrite,
    onChange: leadership.onChange,
    leader: lease.holder,
    refusal: () => refusal,
    async run(abort: AbortSignal): Promise<void> {
      while (!abort.aborted) {
        const pauseMs = await step(abort);
        await sleep(clock, pauseMs, abort).catch(() => undefined);
      }
      leadership.lost('stopping');
      if (abort.reason !== NOT_RELEASED) await resign(lease, leadership, log);
    },
  };
}

function assertOrdered({ retryPeriodMs, renewDeadlineMs, leaseDurationMs }: ElectionTimes): void {
  if (retryPeriodMs < renewDeadlineMs && renewDeadlineMs < leaseDurationMs * 0.9) return;
  throw new RangeError('an election needs retryPeriodMs < renewDeadlineMs < 0.9 * leaseDurationMs');
}

/** Returns functions that compute the milliseconds until the next attempt. */
function pauseOf({ retryPeriodMs, random }: ElectionTimes & Pick<Tools, 'random'>) {
  return {
    /**
     * Returns the pause after a failed attempt. The pause is shorter if less time is left in the term. It has a lower
     * limit, so that a failing server is not flooded with requests.
     */
    afterFailure(remainingMs: number): number {
      const pauseMs = Math.max(retryPeriodMs / 10, remainingMs / 4);
      return Math.min(retryPeriodMs, pauseMs);
    },
    /**
     * Returns the pause of a candidate, which waits until the lease may be free. Jitter prevents two candidates from
     * trying at the same time.
     */
    ofCandidate(freeInMs: number): number {
      const pauseMs = retryPeriodMs * (1 + random() * 0.2);
      return freeInMs > 0 ? Math.min(pauseMs, freeInMs) : pauseMs;
    },
  };
}

async function resign(
  lease: ObservedLease,
  leadership: LeadershipTerm,
  log: Logger,
): Promise<void> {
  await leadership.settled();
  if (!lease.ours()) return;
  if (leadership.mayHaveLateWrite())
    return log.warn(
      'the lease expires instead of being released, because a write of this process may still reach the server',
    );
  try {
    await lease.read();
    await lease.release();
  } catch (error) {
    log.warn('cannot release the lease', { problem: messageOf(error) });
  }
}
