/** The policy of a plan: the most specific UpgradePolicy, then the first by name, changed by the plan's own fields. */
import { type UpgradePolicy, upgradePolicies } from '../../api/refit/upgrade-policy.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { KubeObject } from '../../kube/resources.ts';
import { ifFound } from '../../kube/status-error.ts';
import type { Dialect } from '../dialect.ts';
import { readPolicy } from './read-policy.ts';
import { DEFAULT_POLICY, type RolloutPolicy } from './rollout-policy.ts';

/** What policies select plans by; cluster-scoped kinds have no namespace. */
export interface PlanRef {
  readonly dialect: string;
  readonly namespace?: string | undefined;
  readonly name: string;
}

/** Each weighs more than all less specific ones together. */
const WEIGHTS = { name: 4, namespace: 2, dialect: 1 } as const;
const MEMBERS = ['name', 'namespace', 'dialect'] as const;

/** An invalid policy still counts, with its problems: it may forbid what a less specific one allows. */
export function policyFor(
  policies: readonly UpgradePolicy[],
  plan: PlanRef,
  uncovered: RolloutPolicy = DEFAULT_POLICY,
): RolloutPolicy {
  const [first] = coveringPolicies(policies, plan);
  return first ? readPolicy(first.policy) : uncovered;
}

export interface Covering {
  readonly policy: UpgradePolicy;
  readonly rank: number;
}

export function coveringPolicies(policies: readonly UpgradePolicy[], plan: PlanRef): readonly Covering[] {
  return policies
    .flatMap((policy) => {
      const rank = rankOf(policy, plan);
      return rank === undefined ? [] : [{ policy, rank }];
    })
    .toSorted((a, b) => b.rank - a.rank || (a.policy.metadata.name < b.policy.metadata.name ? -1 : 1));
}

/** The rank of its most specific entry; undefined if none matches. */
function rankOf({ spec: { plans = [{}] } }: UpgradePolicy, plan: PlanRef): number | undefined {
  const ranks = plans.flatMap((entry) => {
    const given = MEMBERS.filter((member) => entry[member] !== undefined);
    const matches = given.every((member) => entry[member] === plan[member]);
    return matches ? [given.reduce((sum, member) => sum + WEIGHTS[member], 0)] : [];
  });
  return ranks.length === 0 ? undefined : Math.max(...ranks);
}

/** Undefined if the cluster lacks the kind. Rejects without the right to list them, because they would still apply. */
export async function listPolicies(client: KubeClient, abort: AbortSignal): Promise<UpgradePolicy[] | undefined> {
  return (await ifFound(client.listAll(upgradePolicies, { abort })))?.items;
}

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
