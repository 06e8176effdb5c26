/** Warns about the drain fields of an UpgradePolicy that nobody follows where the leader does not drain. */
import type { UpgradePolicySpec } from '../api/refit/upgrade-policy.ts';

type Dialect = 'autopilot' | 'cattle';
type Field = 'pods' | 'order' | 'waitForJobs' | 'loadBalancers' | 'volumes' | 'evictionRequests';

/** Who drains instead of the leader, the fields of `spec.drain` that it does not read, and how the leader comes to drain. */
const DRAINERS: Readonly<
  Record<
    Dialect,
    { readonly who: string; readonly unread: readonly Field[]; readonly remedy: string }
  >
> = {
  autopilot: {
    who: 'a node of k0s that drains itself',
    unread: ['pods', 'order', 'waitForJobs', 'volumes', 'evictionRequests'],
    remedy: 'it does so under a leader of k0s before 1.35, or if its agent may not mark its Lease',
  },
  cattle: {
    who: 'the Job of a Rancher Plan that drains its node',
    unread: ['pods', 'order', 'waitForJobs', 'loadBalancers', 'volumes', 'evictionRequests'],
    remedy: 'it does so unless the controller has SYSTEM_UPGRADE_JOB_DRAIN_IN_JOB=false',
  },
};

/** Returns a warning for each dialect of the policy in which somebody else than the leader may drain. */
export function unfollowedDrain({ drain, plans }: UpgradePolicySpec): string[] {
  if (drain === undefined || drain.enabled === false) return [];
  const isSet: Readonly<Record<Field, boolean>> = {
    pods: (drain.pods?.length ?? 0) > 0,
    order: drain.order !== undefined,
    waitForJobs: drain.waitForJobs !== undefined,
    loadBalancers: drain.loadBalancers?.exclude === true,
    volumes: drain.volumes?.waitForDetach === true,
    evictionRequests: drain.evictionRequests === 'Use',
  };
  const covers = (dialect: Dialect): boolean =>
    plans === undefined || plans.some((plan) => (plan.dialect ?? dialect) === dialect);
  return (['autopilot', 'cattle'] as const).filter(covers).flatMap((dialect) => {
    const { who, unread, remedy } = DRAINERS[dialect];
    const fields = unread.filter((field) => isSet[field]).map((field) => `spec.drain.${field}`);
    const them = fields.length === 1 ? 'it' : 'them';
    return fields.length === 0
      ? []
      : [`${fields.join(', ')}: ${who} does not follow ${them}; ${remedy}`];
  });
}
