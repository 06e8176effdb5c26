/** Says that a hook of a policy failed, and finds this sentence again in the record of a failure. */
import type { Hook } from '../../hooks/rules.ts';
import { because, type Reason } from '../model/reasons.ts';
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
const FAILED_HOOK = /(?:^|: )the hook (\S+) of UpgradePolicy (\S+) failed: /;

/**
 * Returns the recorded reason with the name of the hook that failed; undefined if the sentence is about no failed hook.
 * If the work on the node was cancelled, only the sentence is recorded, and no code.
 */
export function readHookFailure({ message }: Pick<Reason, 'message'>): Reason | undefined {
  const [, hook, policy] = FAILED_HOOK.exec(message) ?? [];
  if (hook === undefined || policy === undefined) return undefined;
  return because('HookFailed', message, { policy, hook });
}
