/** Owns what a plan is held to: by the policy that covers it, and by its own words. */
import type { UpgradePolicy } from '../../api/refit/upgrade-policy.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { Dialect } from '../dialect.ts';
import { policyFor } from './choose-policy.ts';
import { DEFAULT_POLICY, type RolloutPolicy } from './rollout-policy.ts';

/** `uncovered` is for plans that none of the policies covers. */
export function policyOfPlan<P extends KubeObject>(
  dialect: Pick<Dialect<P>, 'name' | 'planRules'>,
  policies: readonly UpgradePolicy[],
  plan: P,
  uncovered: RolloutPolicy = DEFAULT_POLICY,
): RolloutPolicy {
  const { name, namespace } = plan.metadata;
  const policy = policyFor(policies, { dialect: dialect.name, name, namespace }, uncovered);
  return dialect.planRules?.apply(plan, policy) ?? policy;
}
