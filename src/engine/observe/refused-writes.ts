/** Remembers which targets' objects the API server refuses to change. They wait for a growing pause; the others go on. */
import type { Clock } from '../../util/clock.ts';
import type { Unanswered } from '../model/decision.ts';
import { because, type Reason } from '../model/reasons.ts';
import type { Rollout, Stage, Target } from '../model/rollout.ts';
import { ProbeBackoff } from './probes.ts';

interface Refused {
  readonly stage: Stage;
  readonly target: Target;
}

/** Of one term of leadership. */
export class RefusedWrites {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #report: (rollout: Rollout, at: Refused, reason: Reason) => void;
  readonly #backoff = new ProbeBackoff();

  /** `report` is called for each refusal in other words than the last one. */
  constructor(clock: Pick<Clock, 'monotonic'>, report: (rollout: Rollout, at: Refused, reason: Reason) => void) {
    this.#clock = clock;
    this.#report = report;
  }

  of(rollout: Rollout, target: Target): Unanswered | undefined {
    return this.#backoff.of(keyOf(rollout, target), this.#clock.monotonic());
  }

  /** `words`: those of the API server. */
  add(rollout: Rollout, at: Refused, words: string): void {
    const reason = because('TargetRefused', `${at.target.name}: the API server refuses to change its object: ${words}`);
    const { isNew } = this.#backoff.add(keyOf(rollout, at.target), reason, this.#clock.monotonic());
    if (isNew) this.#report(rollout, at, reason);
  }

  /** Milliseconds until one is tried again. */
  nextMs(): number | undefined {
    return this.#backoff.nextMs(this.#clock.monotonic());
  }
}

function keyOf({ source }: Rollout, { key }: Target): string {
  return `${source.uid} ${key}`;
}
