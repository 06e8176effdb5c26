/** Warns about the drain fields of an UpgradePolicy that have no effect on nodes that the leader does not drain. */
import type { UpgradePolicySpec } from '../api/refit/upgrade-policy.ts';
import type { DialectModule } from './contract/dialect-module.ts';
import type { DrainField } from './contract/self-drain.ts';
import { isCovered } from './covered-dialects.ts';

/** Returns a warning for each dialect of the policy in which something other than the leader may drain nodes. */
export function unfollowedDrain(
  { drain, plans }: UpgradePolicySpec,
  dialects: readonly (Pick<DialectModule, 'selfDrain'> & { readonly name: string })[],
): string[] {
  if (drain === undefined || drain.enabled === false) return [];
  const isSet: Readonly<Record<DrainField, boolean>> = {
    pods: (drain.pods?.length ?? 0) > 0,
    order: drain.order !== undefined,
    waitForJobs: drain.waitForJobs !== undefined,
    loadBalancers: drain.loadBalancers?.exclude === true,
    volumes: drain.volumes?.waitForDetach === true,
    evictionRequests: drain.evictionRequests === 'Use',
    zeroDisruptionBudgets: drain.zeroDisruptionBudgets === 'Wait',
  };
  return dialects.flatMap(({ name, selfDrain }) => {
    if (selfDrain === undefined || !isCovered(name, plans)) return [];
    const { drainer, when, unread } = selfDrain;
    const fields = unread.filter((field) => isSet[field]).map((field) => `spec.drain.${field}`);
    return fields.length === 0 ? [] : [`${fields.join(', ')}: ignored by ${drainer}. ${when}`];
  });
}
