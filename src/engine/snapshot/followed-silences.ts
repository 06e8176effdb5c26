/** Tells the keeper of silences which nodes of a plan are in progress. */
import type { SilenceKeeper } from '../../silences/keeper.ts';
import { factsOf, nodeNameOf } from '../gates/types.ts';
import { isFinal, targetsIn } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

/**
 * Asks for silences for the nodes in progress. A node is in progress from the time when the record allows its start
 * until it fails, or until it is done and its settle time is over. `plan` identifies the plan among the plans of all
 * dialects.
 */
export function followSilences(
  keeper: SilenceKeeper | undefined,
  plan: string,
  snapshot: Snapshot,
  { name = '', silences = [] }: RolloutPolicy,
): void {
  const { rollout } = snapshot;
  if (silences.length === 0 || isFinal(rollout)) {
    keeper?.forget(plan);
    return;
  }
  const intended = targetsIn(rollout, 'intended');
  const nodes = intended.map((target) => nodeNameOf(target, factsOf(snapshot, target)));
  keeper?.follow(plan, {
    policy: name,
    rules: silences,
    uid: rollout.source.uid ?? '',
    rollsBack: rollout.rollsBack !== undefined,
    nodes,
  });
}
