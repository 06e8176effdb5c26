/** Decides which targets need a claim: a plan claims a Node before it starts there if other processes may start on the same Node. */
import type { Snapshot, TargetFacts } from '../model/decision.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

/**
 * Returns true if the Node of the target must bear the claim of the plan before the target is
 * signalled.
 */
export function needsClaim(
  { claimNeed }: Pick<TargetFacts, 'claimNeed'>,
  { maxUnavailable, perDomain }: Pick<RolloutPolicy, 'maxUnavailable' | 'perDomain'>,
): boolean {
  const hasLimit = maxUnavailable !== undefined || perDomain !== undefined;
  return claimNeed === 'always' || (claimNeed === 'with-limit' && hasLimit);
}

/**
 * Returns true as long as the watch does not show the claim that the target needs. The watch may then lack newer claims of other plans,
 * too.
 */
export function isUnclaimed(
  { claim }: Pick<Snapshot, 'claim'>,
  facts: TargetFacts,
  policy: RolloutPolicy,
): boolean {
  if (!facts.node || !needsClaim(facts, policy)) return false;
  return facts.node.claim !== claim || facts.isNodeOutdated === true;
}
