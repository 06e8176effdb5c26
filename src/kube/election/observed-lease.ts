/** Reads and writes one Lease, and remembers how long its last renewal has been seen. */
import type { Clock } from '../../util/clock.ts';
import type { KubeClient } from '../client.ts';
import { type Lease, leases } from '../resources.ts';
import { ifFound, isAlreadyExists, isConflict, isNotFound } from '../status-error.ts';
import { type Claim, holderOf, released, renewalOf } from './lease-record.ts';
import type { TermTimes } from './write-guard.ts';

/** Which lease it is, and who stands for election. */
export interface LeaseIdentity {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly name: string;
  /** Must be new for each start of a process: a restarted process is another candidate. */
  readonly identity: string;
  /** Written with each claim; other labels on the lease stay. */
  readonly labels?: (identity: string) => Readonly<Record<string, string>>;
}

export interface LeaseOptions extends LeaseIdentity, TermTimes {
  readonly clock: Clock;
}

export interface ObservedLease {
  /** Returns who held the lease when it was last read; empty if nobody did. */
  readonly holder: () => string;
  /** Returns the lease if we held it when it was last read, else undefined. */
  readonly ours: () => Lease | undefined;
  /** True if the lease existed when it was last read. */
  readonly exists: () => boolean;
  /** Returns the lease as last read; undefined if it was never found. */
  readonly last: () => Lease | undefined;
  /** Returns the milliseconds until we may claim the lease; zero or less when it is free. */
  freeInMs(): number;
  /** True for an error which says that somebody else wrote: that is routine. A lease that cannot be created because its namespace is missing is not. */
  readonly hasChanged: (thrown: unknown) => boolean;
  read(abort?: AbortSignal): Promise<void>;
  /** Takes no `abort`: an abandoned claim could leave a lease that nobody renews. */
  write(next: (claim: Claim) => Lease): Promise<Lease>;
  /** Gives the lease up if we hold it. */
  release(): Promise<void>;
}

/** Starts with a lease that was never read. When it expires follows from when this process first read a renewal: the holder's own clock is ignored. */
export function observedLease(options: LeaseOptions): ObservedLease {
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
    freeInMs(): number {
      if (!observed || ['', identity].includes(holder())) return 0;
      const seconds = observed.lease.spec?.leaseDurationSeconds;
      const durationMs = seconds === undefined ? leaseDurationMs : seconds * 1000;
      return observed.at + durationMs - clock.monotonic();
    },
    hasChanged: (thrown: unknown) =>
      isConflict(thrown) || isAlreadyExists(thrown) || (exists() && isNotFound(thrown)),
    async read(abort?: AbortSignal): Promise<void> {
      const lease = await ifFound(client.get(leases, name, { ...limits, abort }));
      if (lease) observe(lease);
      else forgetUid();
    },
    async write(next: (claim: Claim) => Lease): Promise<Lease> {
      const durationSeconds = Math.ceil(leaseDurationMs / 1000);
      const lease = next({
        identity,
        now: clock.now(),
        durationSeconds,
        labels: labels?.(identity) ?? {},
      });
      const isThere = lease.metadata.uid !== undefined;
      const written = isThere
        ? await client.replace(leases, lease, limits)
        : await client.create(leases, lease, limits);
      return observe(written);
    },
    async release(): Promise<void> {
      const lease = ours();
      if (lease) await client.replace(leases, released(lease, clock.now()), limits);
    },
  };
}
