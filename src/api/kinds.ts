/** Kinds that controllers ask for at their start: to load the schema of one takes as long as to list its objects. */
import { clusterScoped, namespaced } from '../kube/resources.ts';
import type { CattlePlan } from './cattle/plan.ts';
import type { UpgradePolicy } from './refit/upgrade-policy.ts';

export const cattlePlans = namespaced<CattlePlan>('upgrade.cattle.io/v1', 'Plan');
export const upgradePolicies = clusterScoped<UpgradePolicy>(
  'upgrade.refit.dev/v1alpha1',
  'UpgradePolicy',
);
