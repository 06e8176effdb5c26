/** What a process knows about a question that no watch answers, such as the health of an API server. */
import type { Reason } from './reasons.ts';

export type Asked<T> =
  | { readonly kind: 'answered'; readonly answer: T }
  /** The process has not asked yet. It asks when a decision depends on the answer. */
  | { readonly kind: 'unasked' }
  /** The process has asked, but got no answer. What depends on the answer waits until the process asks again. */
  | Unanswered
  /** The process never asks, or there is nothing to ask. Each reader says what it assumes instead of an answer. */
  | { readonly kind: 'never' };

/** A request that failed, and that is sent again after `recheckMs` milliseconds. `reason` says why it failed. */
export interface FailedRequest {
  readonly reason: Reason;
  readonly recheckMs: number;
}

export interface Unanswered extends FailedRequest {
  readonly kind: 'unanswered';
}

/** The values that carry no data are shared, because a rollout may have 15,000 targets. */
export const UNASKED = { kind: 'unasked' } as const;
export const NEVER = { kind: 'never' } as const;

export function answered<T>(answer: T): Asked<T> {
  return { kind: 'answered', answer };
}

export function unanswered({ reason, recheckMs }: FailedRequest): Unanswered {
  return { kind: 'unanswered', reason, recheckMs };
}

/** Returns the answer; undefined if there is none, whatever the cause. */
export function answerOf<T>(asked: Asked<T>): T | undefined {
  return asked.kind === 'answered' ? asked.answer : undefined;
}

/** Returns true if an answer is still to come: the process has not asked yet, or must ask again. */
export function isAwaited({ kind }: Asked<unknown>): boolean {
  return kind === 'unasked' || kind === 'unanswered';
}

/**
 * Returns the fields of a wait that lasts until the probe gets an answer: what ends the wait, and after how many milliseconds the probe is
 * repeated.
 */
export function untilAsked({ reason, recheckMs }: Unanswered) {
  return { reason, ends: 'the probe gets an answer', recheckMs };
}
