/** Names the health checks of a policy in sentences. */
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

/** Returns the subject of every sentence about the check. */
export function titleOfCheck(check: string, { name }: Pick<RolloutPolicy, 'name'>): string {
  return `the health check ${check} of UpgradePolicy ${name}`;
}
