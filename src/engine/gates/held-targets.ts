/** Tells which targets people hold, for rules that go on without them. */
import { isHeld } from '../../signal/holds.ts';
import type { Snapshot } from '../model/decision.ts';
import type { Target } from '../model/rollout.ts';
import { factsOf } from './types.ts';

/** Returns true if somebody holds the target at `now`, in milliseconds, so that the plan goes on without it. */
export function isTargetHeld(
  snapshot: Pick<Snapshot, 'facts'>,
  target: Target,
  now: number,
): boolean {
  const { hold } = factsOf(snapshot, target);
  return hold !== undefined && isHeld(hold, now);
}
