/** Provides the schemas of the kinds in kinds.ts. That file imports no schema. */
import { cattlePlanSchema } from './cattle/plan.ts';
import type { CustomKind } from './crd.ts';
import { cattlePlans, nodeRollouts, upgradePolicies } from './kinds.ts';
import { nodeRolloutSchema } from './refit/node-rollout.ts';
import { upgradePolicySchema } from './refit/upgrade-policy.ts';

export const cattlePlanKind: CustomKind = { resource: cattlePlans, schema: cattlePlanSchema };
export const upgradePolicyKind: CustomKind = {
  resource: upgradePolicies,
  schema: upgradePolicySchema,
};
export const nodeRolloutKind: CustomKind = { resource: nodeRollouts, schema: nodeRolloutSchema };
