/** Remembers which targets' objects the API server refuses to change. They wait for a growing pause; the others go on. */
import type { Clock } from '../../util/clock.ts';
import type { Signalling } from '../model/decision.ts';
import { because, type Reason } from '../model/reasons.ts';
import type { Rollout, Target } from '../model/rollout.ts';
import { probeBackoff } from './probe-backoff.ts';

type Refused = Pick<Signalling, 'stage' | 'target'>;

/** Of one term of leadership. */
export function refusedWrites(
  clock: Pick<Clock, 'monotonic'>,
  report: (rollout: Rollout, at: Refused, reason: Reason) => void,
) {
  const backoff = probeBackoff();
  const keyOf = ({ source }: Rollout, { key }: Target): string => `${source.uid} ${key}`;
  return {
    of: (rollout: Rollout, target: Target) =>
      backoff.isEmpty() ? undefined : backoff.of(keyOf(rollout, target), clock.monotonic()),
    /** `words`: those of the API server. Reports a refusal in other words than the last one. */
    add(rollout: Rollout, at: Refused, words: string): void {
      const message = `${at.target.name}: the API server refuses to change its object: ${words}`;
      const reason = because('TargetRefused', message);
      const { isNew } = backoff.add(keyOf(rollout, at.target), reason, clock.monotonic());
      if (isNew) report(rollout, at, reason);
    },
    nextMs: () => backoff.nextMs(clock.monotonic()),
  };
}

export type RefusedWrites = ReturnType<typeof refusedWrites>;
