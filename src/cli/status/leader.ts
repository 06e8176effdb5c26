/** Who leads: the holder of the lease that all controllers compete for. */

import { LEADER_LEASE } from '../../dialects/registry.ts';
import type { KubeClient } from '../../kube/client.ts';
import { holderOf } from '../../kube/election/lease-record.ts';
import { leases } from '../../kube/resources.ts';
import { isForbidden, isNotFound } from '../../kube/status-error.ts';
import type { Lease } from '../../kube/types.ts';
import { createInformer } from '../../kube/watch/informer.ts';
import { rfc3339 } from '../../util/clock.ts';
import { printable } from '../../util/printable.ts';

export type LeaderView =
  /** The lease cannot be read. */
  | { readonly state: 'unknown' }
  /** Nobody holds it; released at `since`, RFC 3339, if it was ever held. */
  | { readonly state: 'none'; readonly since?: string }
  /** Acquired at `since`, RFC 3339. */
  | { readonly state: 'held'; readonly holder: string; readonly since: string }
  /** It has expired, by less than clocks may differ; last renewed at `since`, RFC 3339. */
  | { readonly state: 'late'; readonly holder: string; readonly since: string }
  /** It has expired for certain; last renewed at `since`. */
  | { readonly state: 'silent'; readonly holder: string; readonly since: string };

/** Milliseconds by which this clock and the leader's may differ. */
const CLOCK_TOLERANCE_MS = 30_000;

const { name, namespace } = LEADER_LEASE;

/** A user who may not read the lease still gets the rest. */
export async function askLeader(client: KubeClient, now: number, abort: AbortSignal): Promise<LeaderView> {
  try {
    return leaderOf(await client.get(leases, name, { namespace, abort }), now);
  } catch (error) {
    if (isNotFound(error)) return { state: 'none' };
    if (isForbidden(error)) return { state: 'unknown' };
    throw error;
  }
}

/** Follows the lease until `abort`; returns `first` until it is loaded. */
export function followLeader(client: KubeClient, first: LeaderView, abort: AbortSignal): (now: number) => LeaderView {
  if (first.state === 'unknown') return () => first;
  const informer = createInformer(client, leases, { namespace, fieldSelector: `metadata.name=${name}` });
  void informer.run(abort);
  return (now) => (informer.synced() ? leaderOf(informer.get(name, namespace), now) : first);
}

export function leaderOf(lease: Lease | undefined, now: number): LeaderView {
  const holder = lease ? printable(holderOf(lease)) : '';
  const { renewTime = '', leaseDurationSeconds = 0, acquireTime = '' } = lease?.spec ?? {};
  if (holder === '') return { state: 'none', ...(renewTime === '' ? {} : { since: toSecond(renewTime) }) };
  const end = Date.parse(renewTime) + leaseDurationSeconds * 1000;
  if (now > end) {
    return { state: now > end + CLOCK_TOLERANCE_MS ? 'silent' : 'late', holder, since: toSecond(renewTime) };
  }
  return { state: 'held', holder, since: toSecond(acquireTime) };
}

/** A Lease has microseconds; all other times here are to the second. */
function toSecond(time: string): string {
  const milliseconds = Date.parse(time);
  return Number.isNaN(milliseconds) ? time : rfc3339(milliseconds);
}
