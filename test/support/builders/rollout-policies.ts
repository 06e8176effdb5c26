/** Policies for tests. By default each is the default policy with a deadline of two hours for each target. */
import { DEFAULT_POLICY, type RolloutPolicy } from '../../../src/engine/policy/rollout-policy.ts';
import { HOUR } from '../clock/times.ts';

export function buildPolicy(more: Partial<RolloutPolicy> = {}): RolloutPolicy {
  return { ...DEFAULT_POLICY, targetDeadlineMs: 2 * HOUR, ...more };
}
