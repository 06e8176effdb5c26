/** Names the health checks of a policy in sentences, and finds them again in the reasons of failures. */
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

/** Returns the subject of every sentence about the check. */
export function titleOfCheck(check: string, { name }: Pick<RolloutPolicy, 'name'>): string {
  return `the health check ${check} of UpgradePolicy ${name}`;
}

/** Returns the names of the checks of the policy because of which targets failed. `messages` are the reasons of the failures. */
export function failedChecks(
  messages: readonly string[],
  policy: Pick<RolloutPolicy, 'name' | 'health'>,
): string[] {
  const { checks = [] } = policy.health ?? {};
  return checks
    .map(({ name }) => name)
    .filter((name) => {
      const subject = `${titleOfCheck(name, policy)} `;
      return messages.some((message) => message.includes(subject));
    });
}
