/** Decides from the leader's lease who cordons: a live leader that claims it, else each node itself. */
import { holderOf, renewalOf } from '../../kube/election/lease-record.ts';
import type { Lease } from '../../kube/resources.ts';
import { CENTRAL_CORDONING_LABEL } from '../../signal/names.ts';
import type { Clock } from '../../util/clock.ts';

/** Who cordons, drains and uncordons for a signal; `unknown` without an answer or without a live leader. */
export type Cordoner = 'self' | 'leader' | 'unknown';

/** The original's lease duration, for a lease that names none. */
const USUAL_DURATION_S = 60;

interface Renewal {
  readonly text: string;
  /** Monotonic milliseconds of its first observation. */
  readonly since: number;
  /** True when it happened while we watched. */
  readonly isWitnessed: boolean;
}

/**
 * The returned function judges the lease as it was just read, undefined when there is none. It remembers earlier answers, because clocks of different hosts prove nothing: a lease that looks expired counts as held
 * once it is renewed while we watch, and one that looks fresh until it stays unchanged for its whole duration.
 */
export function observeLease(clock: Clock): (lease: Lease | undefined) => Cordoner {
  let renewal: Renewal | undefined;
  let askedAt = Number.NEGATIVE_INFINITY;
  const isHeld = (lease: Lease): boolean => {
    const durationMs = (lease.spec?.leaseDurationSeconds ?? USUAL_DURATION_S) * 1000;
    const now = clock.monotonic();
    const text = renewalOf(lease);
    if (renewal?.text !== text) {
      // After a gap longer than the lease's duration nobody can tell when it was renewed.
      const isWitnessed = renewal !== undefined && now - askedAt < durationMs;
      renewal = { text, since: now, isWitnessed };
    }
    askedAt = now;
    const looksFresh = clock.now() - Date.parse(lease.spec?.renewTime ?? '') < durationMs;
    return now - renewal.since < durationMs && (renewal.isWitnessed || looksFresh);
  };
  return (lease) => {
    if (lease === undefined || holderOf(lease) === '' || !isHeld(lease)) return 'unknown';
    return lease.metadata.labels?.[CENTRAL_CORDONING_LABEL] === holderOf(lease) ? 'leader' : 'self';
  };
}
