/**
 * Finds the cordoned nodes that Refit did not cordon. They stay cordoned, so people should know that these nodes get no
 * pods until somebody uncordons them.
 */
import { type DecisionContext, factsOf } from '../gates/types.ts';
import type { Cordoned } from '../model/decision.ts';
import { isFinal, type Target, withStages } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

/**
 * Returns one entry for each cordoned node that Refit did not cordon and whose target is done, in progress or pending.
 */
export function keptCordons({
  snapshot,
  policy,
}: Pick<DecisionContext, 'snapshot' | 'policy'>): Cordoned[] {
  const byName = new Map<string, Cordoned>();
  for (const { target } of withStages(snapshot.rollout)) {
    const message = messageFor(snapshot, policy, target);
    if (message !== undefined) byName.set(target.name, { target: target.name, message });
  }
  return [...byName.values()];
}

function messageFor(snapshot: Snapshot, policy: RolloutPolicy, target: Target): string | undefined {
  const { node, observation, agent } = factsOf(snapshot, target);
  const { name, state } = target;
  if (node?.unschedulable !== true || node.cordonOwner !== undefined) return undefined;
  // Some dialects need time to compute this fact, so it is asked for only for nodes that pass the checks above.
  const unnamedCordon = snapshot.targets.unnamedCordonOf(target.key);
  const before = `${name} stays cordoned after its attempt: it was cordoned before the attempt, and not by Refit`;
  // If the dialect does not say who set the cordon, then only Refit itself cordons its Nodes, and a cordon by Refit
  // always names its owner. So somebody else set this cordon.
  const whose = unnamedCordon ?? 'found';
  if (state === 'done' && unnamedCordon === 'found') return before;
  if (state === 'done')
    return `${name} is cordoned, and not by Refit: somebody cordoned it before its attempt or since`;
  const isToCome = state === 'pending' && observation.kind === 'none';
  const isOpen = !isFinal(snapshot.rollout) && (isToCome || state === 'intended');
  if (!isOpen || whose === 'ours' || policy.drain.uncordon === 'always') return undefined;
  // The agent of another product uncordons every node that it has upgraded.
  const mayUncordon =
    agent?.lacks !== undefined ||
    (observation.kind === 'working' && observation.ownsCordon === true);
  const isKnown = whose === 'found' || isToCome;
  return isKnown && !mayUncordon ? before : undefined;
}
