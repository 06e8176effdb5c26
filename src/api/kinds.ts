/**
 * Lists the kinds that controllers look for when they start. It imports no schema, because loading one takes as long as listing
 * the objects of its kind.
 */
import { clusterScoped, namespaced } from '../kube/resources.ts';
import type { CattlePlan } from './cattle/plan.ts';
import type { NodeRollout } from './refit/node-rollout.ts';
import type { UpgradePolicy } from './refit/upgrade-policy.ts';

export const cattlePlans = namespaced<CattlePlan>('upgrade.cattle.io/v1', 'Plan');
export const upgradePolicies = clusterScoped<UpgradePolicy>(
  'upgrade.refit.dev/v1alpha1',
  'UpgradePolicy',
);
export const nodeRollouts = namespaced<NodeRollout>('upgrade.refit.dev/v1alpha1', 'NodeRollout');
