/** Owns questions that found no answer: whoever needs one waits, and says why, until it is asked again. */
import { backoffDelay } from '../../util/backoff.ts';
import type { Reason } from '../model/reasons.ts';

export interface Unanswered {
  /** Why there is no answer. */
  readonly unanswered: Reason;
  /** Milliseconds until it is asked again. */
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
  return { reason: unanswered, ends: 'the question gets an answer', recheckMs };
}

/** 2 s, 4 s, … one minute: not long for whoever waits, and seldom for what stays so. No chance in it: only one leader asks. */
const WAIT = { base: 4_000, cap: 120_000, random: () => 0 };

interface Try {
  readonly reason: Reason;
  readonly attempt: number;
  /** Milliseconds by the steady clock. */
  readonly askAt: number;
}

/** What one plan has asked for in vain, in one term. Times are milliseconds by the steady clock. */
export class ProbeBackoff {
  readonly #tries = new Map<string, Try>();

  /** Undefined where the question may be asked. */
  of(question: string, now: number): Unanswered | undefined {
    const last = this.#tries.get(question);
    return last && last.askAt > now ? { unanswered: last.reason, recheckMs: last.askAt - now } : undefined;
  }

  /** Asked in vain once more. `isNews` where that was not so before, or for another reason. */
  add(question: string, reason: Reason, now: number): Unanswered & { readonly isNews: boolean } {
    const last = this.#tries.get(question);
    // What nobody has asked for in a long time begins anew.
    const before = last && now - last.askAt < WAIT.cap ? last : undefined;
    const attempt = before ? before.attempt + 1 : 0;
    const recheckMs = backoffDelay(attempt, WAIT);
    this.#tries.set(question, { reason, attempt, askAt: now + recheckMs });
    return { unanswered: reason, recheckMs, isNews: before?.reason.message !== reason.message };
  }

  /** There was an answer. */
  forget(question: string): void {
    this.#tries.delete(question);
  }
}
