/** When a probe that failed is repeated. */
import { backoffDelay } from '../../util/clock.ts';
import type { Unanswered } from '../model/decision.ts';
import type { Reason } from '../model/reasons.ts';

/** 2 s, 4 s, … one minute, without jitter: only the leader probes. */
const WAIT = { base: 4_000, cap: 120_000, random: () => 0 };

export type ProbeBackoff = ReturnType<typeof probeBackoff>;

/** The failed probes of one plan in one term of leadership. Times are milliseconds by the steady clock. */
export function probeBackoff() {
  const tries = new Map<
    string,
    { readonly reason: Reason; readonly attempt: number; readonly askAt: number }
  >();
  return {
    of(probe: string, now: number): Unanswered | undefined {
      const last = tries.get(probe);
      return last && last.askAt > now
        ? { unanswered: last.reason, recheckMs: last.askAt - now }
        : undefined;
    },
    /** The probe failed. `isNew` if it did not fail before, or for another reason. */
    add(probe: string, reason: Reason, now: number) {
      const last = tries.get(probe);
      // The backoff of a probe that nobody repeated for long starts again.
      const before = last && now - last.askAt < WAIT.cap ? last : undefined;
      const attempt = before ? before.attempt + 1 : 0;
      const recheckMs = backoffDelay(attempt, WAIT);
      tries.set(probe, { reason, attempt, askAt: now + recheckMs });
      return { unanswered: reason, recheckMs, isNew: before?.reason.message !== reason.message };
    },
    isEmpty: () => tries.size === 0,
    forget: (probe: string) => tries.delete(probe),
    /** Milliseconds until the next one is repeated; undefined if none waits. */
    nextMs(now: number): number | undefined {
      const waits = [...tries.values()].map(({ askAt }) => askAt - now).filter((ms) => ms > 0);
      return waits.length === 0 ? undefined : Math.min(...waits);
    },
  };
}
