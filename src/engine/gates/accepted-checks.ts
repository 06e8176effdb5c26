/** Judges whether somebody has accepted that a health check fails in this run of the plan. */
import { acceptanceOf } from '../model/decisions-of-people.ts';
import type { GateInput, Waiting } from './types.ts';

/** Milliseconds until the NodeRollout is read again, because no watch shows it. */
const RECHECK_MS = 10_000;

/** Returns the wait for a check that does not pass; undefined if somebody has accepted that the check fails. */
export function unlessAccepted(
  { plan: { decisions }, run, now }: Pick<GateInput, 'plan' | 'run' | 'now'>,
  check: string,
  verdict: Waiting,
): Waiting | undefined {
  // If the decisions of people could not be read, no failure counts as accepted, and the plan waits for the check.
  if (decisions.kind === 'never' || decisions.kind === 'unanswered') return verdict;
  // Until Refit has read which failures people have accepted, the verdict has no `since`. Otherwise the target could
  // miss its deadline because of a check whose failure is accepted.
  if (decisions.kind === 'unasked')
    return { ...verdict, since: undefined, isPassing: true, probe: { kind: 'decisions' } };
  if (acceptanceOf(decisions.answer, run, check, now)) return undefined;
  const ends = `${verdict.ends}, or somebody accepts the failure: refit accept ${decisions.answer.plan} --check ${check}`;
  const recheckMs = Math.min(verdict.recheckMs ?? RECHECK_MS, RECHECK_MS);
  return { ...verdict, ends, recheckMs };
}
