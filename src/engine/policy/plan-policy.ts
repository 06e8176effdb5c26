/** The policy of a plan: from the UpgradePolicy that covers it, and from the plan's own fields. */
import type { UpgradePolicy } from '../../api/refit/upgrade-policy.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { Dialect } from '../dialect.ts';
import { policyFor } from './choose-policy.ts';
import { DEFAULT_POLICY, type RolloutPolicy } from './rollout-policy.ts';

/** `uncovered` is the policy of a plan that no UpgradePolicy covers. */
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
