/** Policies for tests: the default, with two hours for each target unless told otherwise. */
import { DEFAULT_POLICY, type RolloutPolicy } from '../../../src/engine/policy/rollout-policy.ts';
import { HOUR } from '../clock/times.ts';

export function buildPolicy(more: Partial<RolloutPolicy> = {}): RolloutPolicy {
  return { ...DEFAULT_POLICY, targetDeadlineMs: 2 * HOUR, ...more };
}
