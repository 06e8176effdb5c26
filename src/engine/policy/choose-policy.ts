/** Owns which UpgradePolicy counts for a plan: the one that names it most closely, then the first by name. */
import { type UpgradePolicy, upgradePolicies } from '../../api/refit/upgrade-policy.ts';
import type { KubeClient } from '../../kube/client.ts';
import { isNotFound } from '../../kube/status-error.ts';
import { readPolicy } from './read-policy.ts';
import { DEFAULT_POLICY, type RolloutPolicy } from './rollout-policy.ts';

/** What policies choose plans by; `namespace` is absent for kinds without one. */
export interface PlanRef {
  readonly dialect: string;
  readonly namespace?: string | undefined;
  readonly name: string;
}

/** A name says more than a namespace, and that more than a dialect: each counts for more than all that say less. */
const WEIGHTS = { name: 4, namespace: 2, dialect: 1 } as const;
const MEMBERS = ['name', 'namespace', 'dialect'] as const;

/** What holds for the plan; one with problems where its policy cannot be read, since that one would have counted. */
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
  /** How closely it names the plan; more is closer. */
  readonly rank: number;
}

/** All that cover the plan; the first one counts. */
export function coveringPolicies(policies: readonly UpgradePolicy[], plan: PlanRef): readonly Covering[] {
  return policies
    .flatMap((policy) => {
      const rank = rankOf(policy, plan);
      return rank === undefined ? [] : [{ policy, rank }];
    })
    .toSorted((a, b) => b.rank - a.rank || (a.policy.metadata.name < b.policy.metadata.name ? -1 : 1));
}

/** The rank of its closest entry; undefined where none matches. */
function rankOf({ spec: { plans = [{}] } }: UpgradePolicy, plan: PlanRef): number | undefined {
  const ranks = plans.flatMap((entry) => {
    const given = MEMBERS.filter((member) => entry[member] !== undefined);
    const matches = given.every((member) => entry[member] === plan[member]);
    return matches ? [given.reduce((sum, member) => sum + WEIGHTS[member], 0)] : [];
  });
  return ranks.length === 0 ? undefined : Math.max(...ranks);
}

/** Undefined if the cluster lacks the kind. Rejects without the right to list them: they would apply all the same. */
export async function listPolicies(client: KubeClient, abort: AbortSignal): Promise<UpgradePolicy[] | undefined> {
  try {
    return (await client.listAll(upgradePolicies, { abort })).items;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
