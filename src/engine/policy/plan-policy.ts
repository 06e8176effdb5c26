/** Owns what a plan is held to: by the policy that covers it, and by its own words. */
import type { UpgradePolicy } from '../../api/refit/upgrade-policy.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { Dialect } from '../dialect.ts';
import { type CampaignPolicy, DEFAULT_POLICY } from './campaign-policy.ts';
import { policyFor } from './choose-policy.ts';

/** `uncovered` is for plans that none of the policies covers. */
export function policyOfPlan<P extends KubeObject>(
  dialect: Pick<Dialect<P>, 'name' | 'policyOf'>,
  policies: readonly UpgradePolicy[],
  plan: P,
  uncovered: CampaignPolicy = DEFAULT_POLICY,
): CampaignPolicy {
  const { name, namespace } = plan.metadata;
  const policy = policyFor(policies, { dialect: dialect.name, name, namespace }, uncovered);
  return dialect.policyOf?.(plan, policy) ?? policy;
}
