/** Tells the reader of locks which plans wait for the locks of other tools. */
import type { LockReader } from '../../coordination/lock-reader.ts';
import type { Snapshot } from '../model/decision.ts';
import { isFinal } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

/** Has the locks read while the plan is unfinished. `plan` names the plan among those of all dialects. */
export function followLocks(
  reader: LockReader | undefined,
  plan: string,
  { rollout }: Snapshot,
  { coordinate = [] }: RolloutPolicy,
): void {
  if (isFinal(rollout)) reader?.forget(plan);
  else reader?.follow(plan, coordinate);
}
