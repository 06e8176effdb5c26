/** Decides whether Nodes must be claimed before their targets can be signalled. */
import { isClaimOfOther } from '../../signal/at-work.ts';
import type { Assessment } from '../assess/assess.ts';
import { needsClaim } from '../assess/claims.ts';
import { factsOf } from '../gates/types.ts';
import { withStages } from '../model/rollout.ts';

/** True if a target that only lacks its claim can be signalled once its Node has one. */
export function areClaimsDue(assessment: Assessment): boolean {
  const { snapshot, policy } = assessment;
  const { rollout, claim: own = '', awaits } = snapshot;
  if (rollout.phase !== 'running') return false;
  // The work of this plan waits for the other one, which needs the place.
  if (policy.maxUnavailable && awaits !== undefined) return false;
  return withStages(rollout).some(({ stage, target }) => {
    if (target.state !== 'intended') return false;
    const facts = factsOf(snapshot, target);
    const { node, refusal } = facts;
    if (!node || refusal || !needsClaim(facts, policy)) return false;
    const isTaken = node.claim === own || isClaimOfOther(node.claim, own);
    return !isTaken && assessment.of(stage, target).gate === undefined;
  });
}
