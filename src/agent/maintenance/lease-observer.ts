/** Decides from the leader's lease who cordons: a live leader that claims it, else each node itself. */
import { holderOf, renewalOf } from '../../kube/election/lease-record.ts';
import type { Lease } from '../../kube/types.ts';
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
 * Remembers earlier answers, because clocks of different hosts prove nothing: a lease that looks expired counts as held
 * once it is renewed while we watch, and one that looks fresh until it stays unchanged for its whole duration.
 */
export class LeaseObserver {
  readonly #clock: Clock;
  #renewal: Renewal | undefined;
  #askedAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `lease` as it was just read; undefined when there is none. */
  judge(lease: Lease | undefined): Cordoner {
    if (lease === undefined || holderOf(lease) === '') return 'unknown';
    if (!this.#isHeld(lease)) return 'unknown';
    return lease.metadata.labels?.[CENTRAL_CORDONING_LABEL] === holderOf(lease) ? 'leader' : 'self';
  }

  #isHeld(lease: Lease): boolean {
    const durationMs = (lease.spec?.leaseDurationSeconds ?? USUAL_DURATION_S) * 1000;
    const now = this.#clock.monotonic();
    const text = renewalOf(lease);
    if (this.#renewal?.text !== text) {
      // After a gap longer than the lease's duration nobody can tell when it was renewed.
      const isWitnessed = this.#renewal !== undefined && now - this.#askedAt < durationMs;
      this.#renewal = { text, since: now, isWitnessed };
    }
    this.#askedAt = now;
    const { since, isWitnessed } = this.#renewal;
    return now - since < durationMs && (isWitnessed || this.#looksFresh(lease, durationMs));
  }

  #looksFresh({ spec }: Lease, durationMs: number): boolean {
    const renewedAt = Date.parse(spec?.renewTime ?? '');
    return this.#clock.now() - renewedAt < durationMs;
  }
}
