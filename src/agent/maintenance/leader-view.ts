/** Owns reading from the leader's lease who cordons: the leader, where one lives that says so, else each node by itself. */
import { holderOf, renewalOf } from '../../kube/election/lease-record.ts';
import type { Lease } from '../../kube/types.ts';
import { CENTRAL_CORDONING_LABEL } from '../../signal/names.ts';
import type { Clock } from '../../util/clock.ts';
import type { Cordoner } from './duties.ts';

/** The original's lease duration; a lease without one is none that it could have written. */
const USUAL_DURATION_S = 60;

/** A sign of life, when we first saw it, and whether it came while we were looking. */
interface Sighting {
  readonly life: string;
  readonly since: number;
  readonly isWitnessed: boolean;
}

/**
 * Remembers what it was shown, as clocks of different hosts prove nothing: a lease that looks expired is believed once it
 * is renewed before our eyes, and one that looks fresh until it was seen unchanged for its whole duration.
 */
export class LeaseObserver {
  readonly #clock: Clock;
  #sighting: Sighting | undefined;
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `lease` as it was just read; undefined where there is none. */
  judge(lease: Lease | undefined): Cordoner {
    if (lease === undefined || holderOf(lease) === '') return 'unknown';
    if (!this.#isHeld(lease)) return 'unknown';
    return lease.metadata.labels?.[CENTRAL_CORDONING_LABEL] === holderOf(lease) ? 'leader' : 'self';
  }

  #isHeld(lease: Lease): boolean {
    const durationMs = (lease.spec?.leaseDurationSeconds ?? USUAL_DURATION_S) * 1000;
    const now = this.#clock.monotonic();
    const life = renewalOf(lease);
    if (this.#sighting?.life !== life) {
      // Somebody who looked away for longer than a lease lasts cannot tell when it was renewed.
      const isWitnessed = this.#sighting !== undefined && now - this.#lookedAt < durationMs;
      this.#sighting = { life, since: now, isWitnessed };
    }
    this.#lookedAt = now;
    const { since, isWitnessed } = this.#sighting;
    return now - since < durationMs && (isWitnessed || this.#looksFresh(lease, durationMs));
  }

  #looksFresh({ spec }: Lease, durationMs: number): boolean {
    const renewedAt = Date.parse(spec?.renewTime ?? '');
    return this.#clock.now() - renewedAt < durationMs;
  }
}
