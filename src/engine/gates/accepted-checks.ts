/** Judges whether somebody has accepted, for this run of the plan, that a health check fails. */
import { isUnanswered } from '../model/decision.ts';
import { acceptanceOf } from '../model/decisions-of-people.ts';
import type { GateInput, Waiting } from './types.ts';

/** Milliseconds until the NodeRollout is read again, because no watch shows it. */
const RECHECK_MS = 10_000;

/** Returns the wait for a check that does not pass, or undefined if somebody has accepted that. */
export function unlessAccepted(
  { decisions, run, now }: Pick<GateInput, 'decisions' | 'run' | 'now'>,
  check: string,
  verdict: Waiting,
): Waiting | undefined {
  // Without an answer nothing is accepted, and the check holds the plan back as it does without NodeRollouts.
  if (decisions === undefined || isUnanswered(decisions)) return verdict;
  // Nothing fails for good before the acceptances are read, so this wait does not say since when the check fails.
  if (decisions === 'unasked')
    return { ...verdict, since: undefined, isPassing: true, probe: { kind: 'decisions' } };
  if (acceptanceOf(decisions, run, check, now)) return undefined;
  const ends = `${verdict.ends}, or somebody accepts that: refit accept ${decisions.plan} --check ${check}`;
  const recheckMs = Math.min(verdict.recheckMs ?? RECHECK_MS, RECHECK_MS);
  return { ...verdict, ends, recheckMs };
}
