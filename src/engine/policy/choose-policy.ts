/** The policy of a plan: the most specific UpgradePolicy, then the first by name, changed by the plan's own fields. */
import { upgradePolicies } from '../../api/kinds.ts';
import type { UpgradePolicy, UpgradePolicySpec } from '../../api/refit/upgrade-policy.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { KubeObject } from '../../kube/resources.ts';
import { ifFound } from '../../kube/status-error.ts';
import type { Dialect } from '../contract/dialect.ts';
import type { World } from '../contract/world.ts';
import { readPolicy } from './read-policy.ts';
import { DEFAULT_POLICY, type RolloutPolicy } from './rollout-policy.ts';

/** What policies select plans by; cluster-scoped kinds have no namespace. */
export interface PlanRef {
  readonly dialect: string;
  readonly namespace?: string | undefined;
  readonly name: string;
}

/** What it sets must match. */
type PlanEntry = NonNullable<UpgradePolicySpec['plans']>[number];

/** In an entry each counts more than all after it together. */
const MEMBERS = ['name', 'namespace', 'dialect'] as const;

/** Each with its most specific entry that matches the plan. */
export function coveringPolicies(policies: readonly UpgradePolicy[], plan: PlanRef) {
  const matches = (entry: PlanEntry): boolean =>
    MEMBERS.every((member) => entry[member] === undefined || entry[member] === plan[member]);
  return policies
    .flatMap((policy) => {
      const { plans = [{}] } = policy.spec;
      const [entry] = plans.filter(matches).toSorted((a, b) => rankOf(b) - rankOf(a));
      return entry ? [{ policy, entry }] : [];
    })
    .toSorted(
      (a, b) =>
        rankOf(b.entry) - rankOf(a.entry) ||
        (a.policy.metadata.name < b.policy.metadata.name ? -1 : 1),
    );
}

function rankOf(entry: PlanEntry): number {
  return MEMBERS.reduce((rank, member) => 2 * rank + (entry[member] === undefined ? 0 : 1), 0);
}

/** `plans with namespace a, name b`; equal entries give equal text. `all`: for an entry that matches every plan. */
export function describeEntry({ dialect, namespace, name }: PlanEntry, all: string): string {
  const given = Object.entries({ dialect, namespace, name }).flatMap(([member, value]) =>
    value === undefined ? [] : [`${member} ${value}`],
  );
  return given.length === 0 ? all : `plans with ${given.join(', ')}`;
}

/** Undefined if the cluster lacks the kind. Rejects without the right to list them, because they would still apply. */
export async function listPolicies(
  client: KubeClient,
  abort: AbortSignal,
): Promise<UpgradePolicy[] | undefined> {
  return (await ifFound(client.listAll(upgradePolicies, { abort })))?.items;
}

/** An invalid policy still counts, with its problems: it may forbid what a less specific one allows. `uncovered`: without any. `world`: for read-only commands. */
export function policyOfPlan<P extends KubeObject>(
  dialect: Pick<Dialect<P>, 'name' | 'planRules'>,
  policies: readonly UpgradePolicy[],
  plan: P,
  uncovered: RolloutPolicy = DEFAULT_POLICY,
  world?: World,
): RolloutPolicy {
  const { name, namespace } = plan.metadata;
  const [first] = coveringPolicies(policies, { dialect: dialect.name, name, namespace });
  const policy = first ? readPolicy(first.policy) : uncovered;
  return dialect.planRules?.apply(plan, policy, world) ?? policy;
}
