/** Provides the schemas of the kinds in kinds.ts, which has none. */
import { cattlePlanSchema } from './cattle/plan.ts';
import type { CustomKind } from './crd.ts';
import { cattlePlans, upgradePolicies } from './kinds.ts';
import { upgradePolicySchema } from './refit/upgrade-policy.ts';

export const cattlePlanKind: CustomKind = { resource: cattlePlans, schema: cattlePlanSchema };
export const upgradePolicyKind: CustomKind = {
  resource: upgradePolicies,
  schema: upgradePolicySchema,
};
