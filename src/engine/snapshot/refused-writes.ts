/** Remembers which targets have an object that the API server refuses to change. Only these targets wait, each for a growing pause. */
import type { MonotonicClock } from '../../util/clock.ts';
import type { Signalling, Unanswered } from '../model/decision.ts';
import { because, type Reason } from '../model/reasons.ts';
import type { Rollout, Target } from '../model/rollout.ts';
import { probeBackoff } from './probe-backoff.ts';

type Refused = Pick<Signalling, 'stage' | 'target'>;

/** Reports a refused write. It is called if the message differs from the last one about the same target. */
export type ReportRefusal = (rollout: Rollout, at: Refused, reason: Reason) => void;

/** The refused writes of one term of leadership. */
export interface RefusedWrites {
  /** Returns the last refusal of the target's object and the pause that is left; undefined if it may be written now. */
  of(rollout: Rollout, target: Target): Unanswered | undefined;
  /** Records a refusal. `message` is what the API server answered. */
  add(rollout: Rollout, at: Refused, message: string): void;
  /** Returns the milliseconds until the next write may be tried again; undefined if no target waits. */
  nextMs(): number | undefined;
}

/** Returns an empty record of refused writes. It calls `report` for new refusals. */
export function refusedWrites(clock: MonotonicClock, report: ReportRefusal): RefusedWrites {
  const backoff = probeBackoff();
  const keyOf = ({ source }: Rollout, { key }: Target): string => `${source.uid} ${key}`;
  return {
    of: (rollout, target) =>
      backoff.isEmpty() ? undefined : backoff.of(keyOf(rollout, target), clock.monotonic()),
    add(rollout, at, message) {
      const described = `${at.target.name}: the API server refuses to change its object: ${message}`;
      const reason = because('TargetRefused', described);
      const { isNew } = backoff.add(keyOf(rollout, at.target), reason, clock.monotonic());
      if (isNew) report(rollout, at, reason);
    },
    nextMs: () => backoff.nextMs(clock.monotonic()),
  };
}
