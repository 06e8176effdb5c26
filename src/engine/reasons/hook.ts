/** Says that a hook of a policy failed, and finds this sentence again in the record of a failure. */
import type { Hook } from '../../hooks/rules.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

/** Returns the subject of every sentence about the hook. */
export function titleOfHook(
  { name }: Pick<Hook, 'name'>,
  policy: Pick<RolloutPolicy, 'name'>,
): string {
  return `the hook ${name} of UpgradePolicy ${policy.name}`;
}

/** Returns the clause which says that the hook failed. `why` is what its Job or its server answered. */
export function hookFailed(
  hook: Pick<Hook, 'name'>,
  policy: Pick<RolloutPolicy, 'name'>,
  why: string,
): string {
  return `${titleOfHook(hook, policy)} failed: ${why}`;
}

/** Matches the clause of `hookFailed`, at the beginning of a sentence or after the words that say where it comes from. */
const FAILED_HOOK = /(?:^|: )the hook \S+ of UpgradePolicy \S+ failed: /;

/** Returns true if a recorded failure says that a hook failed. If the work on the node was cancelled, only this sentence is recorded, and no code. */
export function isHookFailure(failure: string): boolean {
  return FAILED_HOOK.test(failure);
}
