/** Backoff for probes without an answer: the targets that need one wait until it is repeated. */
import { backoffDelay } from '../../util/backoff.ts';
import type { Reason } from '../model/reasons.ts';

export interface Unanswered {
  /** Why there is no answer. */
  readonly unanswered: Reason;
  /** Milliseconds until the probe is repeated. */
  readonly recheckMs: number;
}

export function isUnanswered(given: unknown): given is Unanswered {
  return typeof given === 'object' && given !== null && 'unanswered' in given;
}

export function untilAsked({ unanswered, recheckMs }: Unanswered): {
  readonly reason: Reason;
  readonly ends: string;
  readonly recheckMs: number;
} {
  return { reason: unanswered, ends: 'the probe gets an answer', recheckMs };
}

/** 2 s, 4 s, … one minute, without jitter: only the leader probes. */
const WAIT = { base: 4_000, cap: 120_000, random: () => 0 };

interface Try {
  readonly reason: Reason;
  readonly attempt: number;
  /** Milliseconds by the steady clock. */
  readonly askAt: number;
}

/** The failed probes of one plan in one term of leadership. Times are milliseconds by the steady clock. */
export class ProbeBackoff {
  readonly #tries = new Map<string, Try>();

  /** Undefined if the probe may run. */
  of(probe: string, now: number): Unanswered | undefined {
    const last = this.#tries.get(probe);
    return last && last.askAt > now ? { unanswered: last.reason, recheckMs: last.askAt - now } : undefined;
  }

  /** The probe failed. `isNew` if it did not fail before, or for another reason. */
  add(probe: string, reason: Reason, now: number): Unanswered & { readonly isNew: boolean } {
    const last = this.#tries.get(probe);
    // The backoff of a probe that nobody repeated for long starts again.
    const before = last && now - last.askAt < WAIT.cap ? last : undefined;
    const attempt = before ? before.attempt + 1 : 0;
    const recheckMs = backoffDelay(attempt, WAIT);
    this.#tries.set(probe, { reason, attempt, askAt: now + recheckMs });
    return { unanswered: reason, recheckMs, isNew: before?.reason.message !== reason.message };
  }

  forget(probe: string): void {
    this.#tries.delete(probe);
  }
}
