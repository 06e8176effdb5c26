/** Says which dialects a policy covers. */
import type { UpgradePolicySpec } from '../api/refit/upgrade-policy.ts';

/** Returns true if the policy covers plans of the dialect. An entry without a dialect covers the plans of every dialect. */
export function isCovered(dialect: string, plans: UpgradePolicySpec['plans']): boolean {
  return plans === undefined || plans.some((plan) => (plan.dialect ?? dialect) === dialect);
}
