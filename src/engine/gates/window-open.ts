/** Gate: a target starts inside of a maintenance window and outside of every blackout, and only where it would be done in time. */
import { rfc3339 } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import { nextStart, openAt } from '../../util/maintenance-windows.ts';
import { because, type ReasonCode } from '../model/reasons.ts';
import type { Target } from '../model/recorded.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { PASS, type Verdict } from './types.ts';

export interface WindowInput {
  readonly target: Target;
  readonly policy: RolloutPolicy;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  /** What nine in ten of such targets took, in milliseconds; undefined where none was measured. */
  readonly expectedMs?: number | undefined;
}

export const windowOpen = {
  name: 'window-open',
  ofRollout: true,
  evaluate({ target, policy, now, expectedMs = 0 }: WindowInput): Verdict {
    const opening = openAt(policy, now);
    if (!opening.open) return closed(policy, now, opening.opensAt);
    // What it is for is when the plan may begin: how long that takes is its own business.
    const own = openAt({ windows: policy.planWindows ?? [], blackouts: [] }, now);
    if (!own.open) return waiting('WindowClosed', outsideOf('the plan', own.opensAt), now, own.opensAt);
    if (now + expectedMs <= opening.until) return PASS;
    const start = nextStart(policy, now, expectedMs);
    const then = start === undefined ? 'no window is that long' : `it may start at ${rfc3339(start)}`;
    const message = `${target.name} takes about ${formatDuration(expectedMs)}, and the window closes at ${rfc3339(opening.until)}: ${then}`;
    return waiting('WindowTooShort', message, now, start ?? opening.until);
  },
};

function closed({ name, blackouts }: RolloutPolicy, now: number, opensAt: number): Verdict {
  const isDark = blackouts.some(({ from, to }) => from <= now && now < to);
  if (!isDark) return waiting('WindowClosed', outsideOf(`UpgradePolicy ${name}`, opensAt), now, opensAt);
  const message = `in a blackout of UpgradePolicy ${name}: nothing starts before ${rfc3339(opensAt)}`;
  return waiting('Blackout', message, now, opensAt);
}

function outsideOf(whose: string, opensAt: number): string {
  return `outside of the maintenance windows of ${whose}: nothing starts before ${rfc3339(opensAt)}`;
}

function waiting(code: ReasonCode, message: string, now: number, until: number): Verdict {
  return { kind: 'wait', reason: because(code, message), recheckMs: until - now, until: rfc3339(until) };
}
