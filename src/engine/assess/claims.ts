/**
 * Decides which targets need a claim. A plan claims a Node before it starts work on the Node, if other processes may
 * also start work on it.
 */
import type { TargetFacts } from '../model/facts.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

/** Returns true if the Node of the target must have the claim of the plan before the target is signalled. */
export function needsClaim(
  { claimNeed }: Pick<TargetFacts, 'claimNeed'>,
  { maxUnavailable, perDomain }: Pick<RolloutPolicy, 'maxUnavailable' | 'perDomain'>,
): boolean {
  const hasLimit = maxUnavailable !== undefined || perDomain !== undefined;
  return claimNeed === 'always' || (claimNeed === 'with-limit' && hasLimit);
}

/**
 * Returns true while the watch does not yet show the claim that the target needs. In that case the watch may also lack
 * newer claims of other plans.
 */
export function isUnclaimed(
  { plan: { claim } }: Pick<Snapshot, 'plan'>,
  facts: TargetFacts,
  policy: RolloutPolicy,
): boolean {
  if (!facts.node || !needsClaim(facts, policy)) return false;
  return facts.node.claim !== claim || facts.isNodeOutdated;
}
