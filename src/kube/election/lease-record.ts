/**
 * Reads and writes the fields of an election in its Lease, and names the candidates. It keeps
 * everything else on the object.
 */
import { microTime } from '../../util/clock.ts';
import type { Lease } from '../resources.ts';

/** The values that a candidate writes into the lease. */
export interface Claim {
  readonly identity: string;
  /** Wall-clock milliseconds, for people and other implementations. No decision uses them. */
  readonly now: number;
  readonly durationSeconds: number;
  readonly labels: Readonly<Record<string, string>>;
}

/**
 * Returns the lease with a new holder. `leaseTransitions`, which numbers the terms, grows by one. A lease without uid
 * was deleted, so a new object with the metadata `place` is returned.
 */
export function taken(lease: Lease | undefined, place: Lease['metadata'], claim: Claim): Lease {
  const anew = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: place };
  const leaseTransitions = lease ? transitionsOf(lease) + 1 : 0;
  const times = { acquireTime: microTime(claim.now), leaseTransitions };
  return withClaim(lease?.metadata.uid === undefined ? anew : lease, claim, times);
}

/**
 * Returns the lease without a holder, in the form that client-go writes, so that any implementation
 * can take it at once.
 */
export function released(lease: Lease, now: number): Lease {
  const times = { acquireTime: microTime(now), renewTime: microTime(now) };
  return {
    ...lease,
    spec: { ...lease.spec, holderIdentity: '', leaseDurationSeconds: 1, ...times },
  };
}

/** Returns the identity of the holder; empty if nobody holds the lease. */
export function holderOf(lease: Lease): string {
  return lease.spec?.holderIdentity ?? '';
}

/** Returns how often the lease changed its holder. This number is the fencing token. */
export function transitionsOf(lease: Lease): number {
  return lease.spec?.leaseTransitions ?? 0;
}

/**
 * Returns a text that changes with every renewal, but not with labels and other fields that people
 * edit.
 */
export function renewalOf({ spec }: Lease): string {
  return JSON.stringify([
    spec?.holderIdentity,
    spec?.renewTime,
    spec?.acquireTime,
    spec?.leaseTransitions,
  ]);
}

/** Returns the lease with the same holder and a later `renewTime`. */
export function renewed(lease: Lease, claim: Claim): Lease {
  return withClaim(lease, claim, {});
}

/**
 * Returns the lease with the fields of the claim. The fields of `more` have precedence over those
 * of the claim and of the lease.
 */
function withClaim(lease: Lease, claim: Claim, more: NonNullable<Lease['spec']>): Lease {
  const { identity, now, durationSeconds, labels } = claim;
  const merged = { ...lease.metadata.labels, ...labels };
  const metadata = {
    ...lease.metadata,
    ...(Object.keys(merged).length > 0 ? { labels: merged } : {}),
  };
  const own = {
    holderIdentity: identity,
    leaseDurationSeconds: durationSeconds,
    renewTime: microTime(now),
  };
  const spec = { acquireTime: own.renewTime, leaseTransitions: 0, ...lease.spec, ...own, ...more };
  return { ...lease, metadata, spec };
}

/**
 * The maximum number of characters of an identity. A label value may not be longer, and k0s writes the identity into a
 * label, too.
 */
const MOST = 63;

/**
 * Returns an identity that is a valid label value. One of `parts` must be new at each start of a
 * process.
 */
export function leaderIdentity(host: string, ...parts: readonly string[]): string {
  const rest = parts.map(clean).join('_');
  const name = clean(host)
    .slice(0, MOST - 1 - rest.length)
    .replace(/(?<![^A-Za-z0-9])[^A-Za-z0-9]+$/, '');
  return name === '' ? rest : `${name}_${rest}`;
}

function clean(text: string): string {
  return text
    .replaceAll(/[^A-Za-z0-9._-]+/g, '-')
    .replaceAll(/^[^A-Za-z0-9]+|(?<![^A-Za-z0-9])[^A-Za-z0-9]+$/g, '');
}
