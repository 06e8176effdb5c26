/** Decides when a failed probe is repeated. */
import { backoffDelay } from '../../util/clock.ts';
import type { FailedRequest } from '../model/asked.ts';
import type { Reason } from '../model/reasons.ts';

/**
 * With `random` at 0, each pause is half of what `base` and `cap` say: 2 s, 4 s, and so on up to one minute. The pauses need no jitter,
 * because only the leader probes.
 */
const WAIT = { base: 4_000, cap: 120_000, random: () => 0 };

/** A failed probe, and when it may be repeated. */
interface FailedProbe extends FailedRequest {
  /** True if the probe did not fail before, or failed for another reason. */
  readonly isNew: boolean;
}

/** The failed probes of one plan in one term of leadership. All times are milliseconds of the monotonic clock. */
export interface ProbeBackoff {
  /** Returns the last failure of the probe and the pause that is left; undefined if the probe may be asked now. */
  of(probe: string, now: number): FailedRequest | undefined;
  /** Records that the probe failed at `now`. */
  add(probe: string, reason: Reason, now: number): FailedProbe;
  /** Returns true if no probe has failed. */
  isEmpty(): boolean;
  /** Records that the probe succeeded, or is not needed any more. */
  forget(probe: string): void;
  /** Returns the milliseconds until the next failed probe may be repeated; undefined if no probe waits. */
  nextMs(now: number): number | undefined;
}

/** Returns an empty record of failed probes. */
export function probeBackoff(): ProbeBackoff {
  const tries = new Map<
    string,
    { readonly reason: Reason; readonly attempt: number; readonly askAt: number }
  >();
  return {
    of(probe, now) {
      const last = tries.get(probe);
      return last && last.askAt > now
        ? { reason: last.reason, recheckMs: last.askAt - now }
        : undefined;
    },
    add(probe, reason, now) {
      const last = tries.get(probe);
      // If the last failure was long ago, the pauses start short again.
      const before = last && now - last.askAt < WAIT.cap ? last : undefined;
      const attempt = before ? before.attempt + 1 : 0;
      const recheckMs = backoffDelay(attempt, WAIT);
      tries.set(probe, { reason, attempt, askAt: now + recheckMs });
      return { reason, recheckMs, isNew: before?.reason.message !== reason.message };
    },
    isEmpty: () => tries.size === 0,
    forget: (probe) => void tries.delete(probe),
    nextMs(now) {
      const waits = [...tries.values()].map(({ askAt }) => askAt - now).filter((ms) => ms > 0);
      return waits.length === 0 ? undefined : Math.min(...waits);
    },
  };
}
