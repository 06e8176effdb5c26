/** Tells the keeper of locks which plans need the locks that they share with other tools. */
import type { LockKeeper } from '../../coordination/lock-keeper.ts';
import type { Snapshot } from '../model/decision.ts';
import { isFinal, targetsIn } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

/** Has the locks read while the plan is unfinished, and held while it has targets in progress. `plan` names the plan among those of all dialects. */
export function followLocks(
  keeper: LockKeeper | undefined,
  plan: string,
  { rollout }: Snapshot,
  { coordinate = [] }: RolloutPolicy,
): void {
  if (isFinal(rollout)) {
    keeper?.follow(plan, coordinate, 'over');
    return;
  }
  const isAtWork = targetsIn(rollout, 'intended').length > 0;
  keeper?.follow(plan, coordinate, isAtWork ? 'at-work' : 'waits');
}
