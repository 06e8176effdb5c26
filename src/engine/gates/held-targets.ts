/** Tells which targets people hold back, for rules that go on without them. */
import { isHeld } from '../../signal/holds.ts';
import type { Stage, Target } from '../model/rollout.ts';
import { notHeld } from './not-held.ts';
import { notPinned } from './not-pinned.ts';
import { pinAgainst } from './pins.ts';
import { type DecisionContext, factsOf } from './types.ts';

/**
 * Returns true if somebody holds the target, or the policy pins it to another version, so that the plan goes on without it. Pins that
 * contradict each other are a mistake, for which the plan waits.
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

/** Returns true for the gates of what people hold back. A target that they stop keeps no slot. */
export function isHolding(gate: string | undefined): boolean {
  return gate === notHeld.name || gate === notPinned.name;
}
