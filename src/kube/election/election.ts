/** Leader election over a Lease: one holder at a time, judged by locally observed time alone. */
import { sleep } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import type { Logger } from '../../util/log.ts';
import { DEFAULT_TOOLS, type Tools } from '../../util/tools.ts';
import type { Lease } from '../resources.ts';
import { isVerdict, type StatusError } from '../status-error.ts';
import { type Claim, renewed, taken, transitionsOf } from './lease-record.ts';
import { type LeaseIdentity, type ObservedLease, observedLease } from './observed-lease.ts';
import { type LeadershipTerm, leadershipTerm, type TermTimes } from './write-guard.ts';

/** Times are in whole seconds: the Lease has no finer unit. Defaults as in client-go: 15 s, 10 s and 2 s. */
export interface ElectionOptions
  extends LeaseIdentity,
    Partial<Tools & ReturnType<typeof timesOf>> {}

/** Ends a candidacy whose work goes on: nobody may lead before the lease expires. */
export const NOT_RELEASED = Symbol('not released');

/** Renewal has two thirds of the lease's duration, and tries five times in that. */
export function timesOf(leaseDurationMs: number): TermTimes & { readonly retryPeriodMs: number } {
  const renewDeadlineMs = (leaseDurationMs * 2) / 3;
  return { leaseDurationMs, renewDeadlineMs, retryPeriodMs: renewDeadlineMs / 5 };
}

export type Election = ReturnType<typeof createElection>;

export function createElection(options: ElectionOptions) {
  const all = { ...DEFAULT_TOOLS, ...timesOf(15_000), ...options };
  const { name, namespace, identity, clock } = all;
  assertOrdered(all);
  const log = all.log.child({ lease: name, identity });
  const lease = observedLease(all);
  const leadership = leadershipTerm(clock, all, log);
  let refusal: StatusError | undefined;
  /** Reads the lease; ends our leadership when the lease is no longer ours. */
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
      // Perhaps only a label changed, or an earlier claim arrived whose answer was lost: read it and try once more.
      await refresh();
      if (leadership.isLeading()) await prolong();
    }
  };
  /** One attempt to get or keep the lease; resolves with the milliseconds until the next one. */
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
    /** Who held the lease when it was last read; empty when nobody did. */
    leader: lease.holder,
    /** The server's last answer if it refuses us the lease: a right or the namespace is missing. */
    refusal: () => refusal,
    /** Stands for election until `abort`. Then waits for its writes and releases the lease, unless one may still arrive, or by NOT_RELEASED. */
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

type Times = ReturnType<typeof timesOf>;

function assertOrdered({ retryPeriodMs, renewDeadlineMs, leaseDurationMs }: Times): void {
  if (retryPeriodMs < renewDeadlineMs && renewDeadlineMs < leaseDurationMs * 0.9) return;
  throw new RangeError('an election needs retryPeriodMs < renewDeadlineMs < 0.9 * leaseDurationMs');
}

/** Returns the milliseconds until the next attempt. */
function pauseOf({ retryPeriodMs, random }: Times & Pick<Tools, 'random'>) {
  return {
    /** A leader asks the sooner the less of its term is left, but never so soon that it floods a failing server. */
    afterFailure(remainingMs: number): number {
      const pauseMs = Math.max(retryPeriodMs / 10, remainingMs / 4);
      return Math.min(retryPeriodMs, pauseMs);
    },
    /** A candidate waits until the lease may be free; jitter keeps two candidates apart. */
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
      'the lease is not released but expires: a write of ours may still reach the server',
    );
  try {
    await lease.read();
    await lease.release();
  } catch (error) {
    log.warn('cannot release the lease', { problem: messageOf(error) });
  }
}
