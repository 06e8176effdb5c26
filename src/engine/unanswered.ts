/** Owns questions that found no answer: whoever needs one waits, and says why, until it is asked again. */
import type { Reason } from './reasons.ts';

export interface Unanswered {
  /** Why there is no answer. */
  readonly unanswered: Reason;
}

/** Milliseconds: not long for whoever waits, and seldom enough for a server that is in trouble already. */
const ASK_AGAIN_MS = 5_000;

export function isUnanswered(given: unknown): given is Unanswered {
  return typeof given === 'object' && given !== null && 'unanswered' in given;
}

export function untilAsked({ unanswered }: Unanswered): { readonly reason: Reason; readonly recheckMs: number } {
  return { reason: unanswered, recheckMs: ASK_AGAIN_MS };
}
