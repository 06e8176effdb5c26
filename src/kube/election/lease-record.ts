/** Reads and writes an election's fields in its Lease, and names the candidates; everything else on the object stays. */
import { microTime } from '../../util/clock.ts';
import type { Lease } from '../resources.ts';

export interface Claim {
  readonly identity: string;
  /** Wall-clock milliseconds, for people and other implementations; no decision uses it. */
  readonly now: number;
  readonly durationSeconds: number;
  readonly labels: Readonly<Record<string, string>>;
}

/** Returns the lease of a new holder: `leaseTransitions`, the number of the term, grows. A lease without uid is made anew. */
export function taken(lease: Lease | undefined, place: Lease['metadata'], claim: Claim): Lease {
  const anew = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: place };
  const leaseTransitions = lease ? transitionsOf(lease) + 1 : 0;
  const times = { acquireTime: microTime(claim.now), leaseTransitions };
  return withClaim(lease?.metadata.uid === undefined ? anew : lease, claim, times);
}

/** Held by nobody, as client-go writes it, so that any implementation takes it at once. */
export function released(lease: Lease, now: number): Lease {
  const times = { acquireTime: microTime(now), renewTime: microTime(now) };
  return {
    ...lease,
    spec: { ...lease.spec, holderIdentity: '', leaseDurationSeconds: 1, ...times },
  };
}

export function holderOf(lease: Lease): string {
  return lease.spec?.holderIdentity ?? '';
}

export function transitionsOf(lease: Lease): number {
  return lease.spec?.leaseTransitions ?? 0;
}

/** Changes with every renewal; labels and other fields that people edit don't count. */
export function renewalOf({ spec }: Lease): string {
  return JSON.stringify([
    spec?.holderIdentity,
    spec?.renewTime,
    spec?.acquireTime,
    spec?.leaseTransitions,
  ]);
}

/** Returns the lease of the same holder: only `renewTime` moves. */
export function renewed(lease: Lease, claim: Claim): Lease {
  return withClaim(lease, claim, {});
}

/** The fields of `more` have precedence over those of the claim and of the lease. */
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

/** Characters of a label value: k0s writes the identity into a label as well. */
const MOST = 63;

/** A valid label value. One of `parts` must be new for each start of a process. */
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
