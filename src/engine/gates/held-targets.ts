/** Finds the targets that people hold back, for rules that ignore such targets. */
import { isHeld } from '../../signal/holds.ts';
import type { Stage, Target } from '../model/rollout.ts';
import { notHeld } from './not-held.ts';
import { notPinned } from './not-pinned.ts';
import { pinAgainst } from './pins.ts';
import { type DecisionContext, factsOf } from './types.ts';

/**
 * Returns true if somebody holds the target, or if the policy pins it to another version, so that the plan continues
 * without the target. If two pins contradict each other, it returns false, because the plan must wait until people
 * correct the pins.
 */
export function isTargetHeld(
  { snapshot, policy, now }: DecisionContext,
  stage: Stage,
  target: Target,
): boolean {
  const facts = factsOf(snapshot, target);
  if (facts.hold !== undefined && isHeld(facts.hold, now)) return true;
  const pin = pinAgainst(policy, stage, facts);
  return pin !== undefined && pin.conflict === undefined;
}

/** Returns true if people hold targets back with this gate. A target that waits for such a gate keeps no slot. */
export function isHolding(gate: string | undefined): boolean {
  return gate === notHeld.name || gate === notPinned.name;
}
