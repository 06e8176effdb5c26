/** Decides whether Nodes must be claimed before their targets can be signalled. */
import { isClaimOfOther } from '../../signal/at-work.ts';
import type { Assessment } from '../assess/assess.ts';
import { needsClaim } from '../assess/claims.ts';
import { factsOf } from '../gates/types.ts';
import { inState, type Stage, type Target } from '../model/rollout.ts';

/** Returns true if a target could be signalled as soon as its Node has the claim of the plan. */
export function areClaimsDue(assessment: Assessment): boolean {
  const { snapshot, policy } = assessment;
  const { rollout } = snapshot;
  const { claim: own = '', awaits } = snapshot.plan;
  if (rollout.phase !== 'running') return false;
  // This plan waits for the plan that `awaits` names. That plan needs the Nodes that may still become unavailable under
  // `maxUnavailable`, so this plan claims no Node.
  if (policy.maxUnavailable && awaits !== undefined) return false;
  const lacksOnlyItsClaim = (stage: Stage, target: Target): boolean => {
    const facts = factsOf(snapshot, target);
    const { node, refusal } = facts;
    if (!node || refusal || !needsClaim(facts, policy)) return false;
    const isTaken = node.claim === own || isClaimOfOther(node.claim, own);
    return !isTaken && assessment.of(stage, target).gate === undefined;
  };
  return rollout.stages.some((stage) =>
    inState(stage, 'intended').some((target) => lacksOnlyItsClaim(stage, target)),
  );
}
