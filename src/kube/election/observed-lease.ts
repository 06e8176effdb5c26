/** Reads and writes one Lease, and remembers the time at which it first read the latest renewal. */
import type { Clock } from '../../util/clock.ts';
import type { KubeClient } from '../client.ts';
import { type Lease, leases } from '../resources.ts';
import { ifFound, isAlreadyExists, isConflict, isNotFound } from '../status-error.ts';
import { type Claim, holderOf, released, renewalOf } from './lease-record.ts';
import type { TermTimes } from './write-guard.ts';

/** Names the lease and the candidate. */
export interface LeaseIdentity {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly name: string;
  /**
   * The name of this candidate. It must be new at each start of a process, because a restarted process is another candidate.
   */
  readonly identity: string;
  /** Returns labels that each claim writes. Other labels on the lease stay. */
  readonly labels?: (identity: string) => Readonly<Record<string, string>>;
}

export interface LeaseOptions extends LeaseIdentity, TermTimes {
  readonly clock: Clock;
}

export interface ObservedLease {
  /** Returns who held the lease when it was last read, or an empty text if nobody did. */
  readonly holder: () => string;
  /** Returns the lease if we held it when it was last read, else undefined. */
  readonly ours: () => Lease | undefined;
  /** Returns true if the lease existed when it was last read. */
  readonly exists: () => boolean;
  /** Returns the lease as it was last read, or undefined if it was never found. */
  readonly last: () => Lease | undefined;
  /** Returns the milliseconds until this process may claim the lease; 0 or less if the lease is free. */
  freeInMs(): number;
  /**
   * Returns true if the error means that somebody else wrote the lease, which is normal. Returns false if the server
   * cannot create the lease because its namespace is missing.
   */
  readonly hasChanged: (thrown: unknown) => boolean;
  /** Reads the lease from the server. */
  read(abort?: AbortSignal): Promise<void>;
  /**
   * Writes the lease that `next` returns. It takes no `abort`, because an aborted claim could still
   * arrive and leave a lease that nobody renews.
   */
  write(next: (claim: Claim) => Lease): Promise<Lease>;
  /** Releases the lease if we hold it. */
  release(): Promise<void>;
}

/**
 * Returns an observer that has not read the lease yet. The lease expires a fixed time after this process first read the
 * latest renewal of the lease. The clock of the holder does not matter.
 */
export function observedLease(options: LeaseOptions): ObservedLease {
  const { client, namespace, name, identity, labels, clock, leaseDurationMs, renewDeadlineMs } =
    options;
  // A request may take a third of the renewal time, so that after one lost answer there is time for
  // a pause and a second attempt.
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
  /**
   * Records that the lease was deleted. The other fields of the lease are kept, because the holder may not know of the
   * deletion yet, and because the number of transitions must not start again at 0.
   */
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
