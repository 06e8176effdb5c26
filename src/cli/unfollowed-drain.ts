/** Warns about the drain fields of an UpgradePolicy that have no effect on nodes that the leader does not drain. */
import type { UpgradePolicySpec } from '../api/refit/upgrade-policy.ts';
import { SELF_DRAINING } from './self-draining.ts';

type Dialect = 'autopilot' | 'cattle';
type Field = 'pods' | 'order' | 'waitForJobs' | 'loadBalancers' | 'volumes' | 'evictionRequests';

/** For each dialect: who may drain a node instead of the leader, when, and which fields of `spec.drain` then have no effect. */
const DRAINERS: Readonly<
  Record<
    Dialect,
    { readonly who: string; readonly when: string; readonly unread: readonly Field[] }
  >
> = {
  autopilot: {
    who: 'a k0s node that drains itself',
    when: SELF_DRAINING.autopilot,
    unread: ['pods', 'order', 'waitForJobs', 'volumes', 'evictionRequests'],
  },
  cattle: {
    who: 'a Job of a Rancher Plan that drains its node',
    when: SELF_DRAINING.cattle,
    unread: ['pods', 'order', 'waitForJobs', 'loadBalancers', 'volumes', 'evictionRequests'],
  },
};

/** Returns a warning for each dialect of the policy in which something other than the leader may drain nodes. */
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
    const { who, when, unread } = DRAINERS[dialect];
    const fields = unread.filter((field) => isSet[field]).map((field) => `spec.drain.${field}`);
    return fields.length === 0 ? [] : [`${fields.join(', ')}: ignored by ${who}. ${when}`];
  });
}
