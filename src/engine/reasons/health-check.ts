/** Names the health checks of a policy in sentences, and finds them again in the records of failures. */
import { because, type Reason } from '../model/reasons.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

/** Returns the subject of every sentence about the check. */
export function titleOfCheck(check: string, { name }: Pick<RolloutPolicy, 'name'>): string {
  return `the health check ${check} of UpgradePolicy ${name}`;
}

/** Matches the subject of a sentence about a check. */
const CHECK = /\bthe health check (\S+) of UpgradePolicy (\S+) /;

/**
 * Returns the recorded reason with the name of the check that it is about; undefined if the sentence is about no check.
 * A record of another tool may have only the sentence, and no code.
 */
export function readCheckFailure({ message }: Pick<Reason, 'message'>): Reason | undefined {
  const [, check, policy] = CHECK.exec(message) ?? [];
  if (check === undefined || policy === undefined) return undefined;
  return because('HealthCheckFailing', message, { policy, check });
}

/** Returns the names of the checks of the policy because of which targets failed. `causes` are the reasons of the failures. */
export function failedChecks(
  causes: readonly Reason[],
  { name: policy, health }: Pick<RolloutPolicy, 'name' | 'health'>,
): string[] {
  const found = new Set(
    causes.flatMap(({ details }) =>
      details !== undefined && 'check' in details && details.policy === policy ? details.check : [],
    ),
  );
  return (health?.checks ?? []).map(({ name }) => name).filter((name) => found.has(name));
}
