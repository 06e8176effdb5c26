/** Leader election over a Lease: one holder at a time, judged by locally observed time alone. */
import { sleep } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import type { Logger } from '../../util/log.ts';
import { DEFAULT_TOOLS, type Tools } from '../../util/tools.ts';
import type { KubeClient } from '../client.ts';
import { type Lease, leases } from '../resources.ts';
import {
  ifFound,
  isAlreadyExists,
  isConflict,
  isNotFound,
  isVerdict,
  type StatusError,
} from '../status-error.ts';
import {
  type Claim,
  holderOf,
  released,
  renewalOf,
  renewed,
  taken,
  transitionsOf,
} from './lease-record.ts';
import { type LeadershipTerm, leadershipTerm, type TermTimes } from './write-guard.ts';

/** Times are in whole seconds: the Lease has no finer unit. Defaults as in client-go: 15 s, 10 s and 2 s. */
export interface ElectionOptions extends Partial<Tools & ReturnType<typeof timesOf>> {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly name: string;
  /** Must be new for each start of a process: a restarted process is another candidate. */
  readonly identity: string;
  /** Written with each claim; other labels on the lease stay. */
  readonly labels?: (identity: string) => Readonly<Record<string, string>>;
}

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
  const {
    name,
    namespace,
    identity,
    clock,
    random,
    leaseDurationMs,
    renewDeadlineMs,
    retryPeriodMs,
  } = all;
  if (!(retryPeriodMs < renewDeadlineMs && renewDeadlineMs < leaseDurationMs * 0.9))
    throw new RangeError(
      'an election needs retryPeriodMs < renewDeadlineMs < 0.9 * leaseDurationMs',
    );
  const log = all.log.child({ lease: name, identity });
  const lease = leaseOnServer(all);
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
      // Sooner the less of the term is left, but never so soon that it floods a failing server.
      if (leadership.isLeading())
        return Math.min(retryPeriodMs, Math.max(retryPeriodMs / 10, leadership.remainingMs() / 4));
    }
    if (leadership.isLeading()) return retryPeriodMs;
    // Until the lease may be free; jitter keeps two candidates apart.
    const [pauseMs, freeInMs] = [retryPeriodMs * (1 + random() * 0.2), lease.freeInMs()];
    return freeInMs > 0 ? Math.min(pauseMs, freeInMs) : pauseMs;
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

async function resign(
  lease: ReturnType<typeof leaseOnServer>,
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

/** The lease as last read, and when we first read this renewal: the holder's own clock is ignored. */
function leaseOnServer(options: ElectionOptions & TermTimes & Pick<Tools, 'clock'>) {
  const { client, namespace, name, identity, labels, clock, leaseDurationMs, renewDeadlineMs } =
    options;
  // A third of the renewal time, so that one lost answer leaves room for a pause and a second attempt.
  const limits = { namespace, deadlineMs: renewDeadlineMs / 3 };
  let observed:
    | { readonly lease: Lease; readonly renewal: string; readonly at: number }
    | undefined;
  const observe = (lease: Lease): Lease => {
    const renewal = renewalOf(lease);
    const at = observed?.renewal === renewal ? observed.at : clock.monotonic();
    observed = { lease, renewal, at };
    return lease;
  };
  /** The lease was deleted: its holder may not know yet, and the number of transitions must not start again. */
  const forgetUid = (): void => {
    if (!observed) return;
    const { uid: _, resourceVersion: __, ...metadata } = observed.lease.metadata;
    observed = { ...observed, lease: { ...observed.lease, metadata } };
  };
  const holder = (): string => (observed ? holderOf(observed.lease) : '');
  const ours = (): Lease | undefined => (holder() === identity ? observed?.lease : undefined);
  const exists = (): boolean => observed?.lease.metadata.uid !== undefined;
  return {
    holder,
    ours,
    exists,
    last: () => observed?.lease,
    /** Milliseconds until we may claim the lease; zero or less when it is free. */
    freeInMs(): number {
      if (!observed || ['', identity].includes(holder())) return 0;
      const seconds = observed.lease.spec?.leaseDurationSeconds;
      const durationMs = seconds === undefined ? leaseDurationMs : seconds * 1000;
      return observed.at + durationMs - clock.monotonic();
    },
    /** Routine: somebody else wrote. A lease that cannot be created because its namespace is missing is not. */
    hasChanged: (thrown: unknown) =>
      isConflict(thrown) || isAlreadyExists(thrown) || (exists() && isNotFound(thrown)),
    async read(abort?: AbortSignal): Promise<void> {
      const lease = await ifFound(client.get(leases, name, { ...limits, abort }));
      if (lease) observe(lease);
      else forgetUid();
    },
    /** Takes no `abort`: an abandoned claim could leave a lease that nobody renews. */
    async write(next: (claim: Claim) => Lease): Promise<Lease> {
      const durationSeconds = Math.ceil(leaseDurationMs / 1000);
      const lease = next({
        identity,
        now: clock.now(),
        durationSeconds,
        labels: labels?.(identity) ?? {},
      });
      const isThere = lease.metadata.uid !== undefined;
      return observe(
        await (isThere
          ? client.replace(leases, lease, limits)
          : client.create(leases, lease, limits)),
      );
    },
    async release(): Promise<void> {
      const lease = ours();
      if (lease) await client.replace(leases, released(lease, clock.now()), limits);
    },
  };
}
