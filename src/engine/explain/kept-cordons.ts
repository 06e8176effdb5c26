/** Names the nodes whose cordon is not Refit's: it stays, and people should know that no pod comes back by itself. */
import { type DecisionContext, factsOf } from '../gates/types.ts';
import type { Cordoned, Snapshot } from '../model/decision.ts';
import { isFinal, type Target, withStages } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

/** One for each node of a target that is done, in progress or still to come. */
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
  const facts = factsOf(snapshot, target);
  const { node, observation, agent } = facts;
  const { name, state } = target;
  if (node?.unschedulable !== true || node.cordonOwner !== undefined) return undefined;
  // It is found when it is read, which takes time in some dialects.
  const { unnamedCordon } = facts;
  const before = `${name} stays cordoned after the upgrade: it was cordoned before it, not by Refit`;
  // Only Refit cordons for a dialect that does not answer, and its cordons name their owner.
  const whose = unnamedCordon ?? 'found';
  if (state === 'done' && whose === 'found' && unnamedCordon !== undefined) return before;
  if (state === 'done')
    return `${name} is cordoned, and not by Refit: somebody cordoned it before its upgrade or since`;
  const isToCome = state === 'pending' && observation.kind === 'none';
  const isOpen = !isFinal(snapshot.rollout) && (isToCome || state === 'intended');
  if (!isOpen || whose === 'ours' || policy.drain.uncordon === 'always') return undefined;
  // An agent of another product makes every node schedulable that it has updated.
  const mayUncordon =
    agent?.lacks !== undefined ||
    (observation.kind === 'working' && observation.ownsCordon === true);
  const isKnown = whose === 'found' || isToCome;
  return isKnown && !mayUncordon ? before : undefined;
}
