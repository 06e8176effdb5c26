/**
 * Chooses the policy of a plan. It is the most specific UpgradePolicy that covers the plan. If several policies are
 * equally specific, the first one by name applies. Then the fields of the plan itself change the policy.
 */
import { upgradePolicies } from '../../api/kinds.ts';
import type { UpgradePolicy, UpgradePolicySpec } from '../../api/refit/upgrade-policy.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { JobNamespaces } from '../../kube/job-namespaces.ts';
import type { KubeObject } from '../../kube/resources.ts';
import { ifFound } from '../../kube/status-error.ts';
import type { Dialect } from '../contract/dialect.ts';
import { type PlanRef, planRefOf, withRulesOfParts } from '../contract/plan-objects.ts';
import type { World } from '../contract/world.ts';
import { because } from '../model/reasons.ts';
import { readPolicy } from './read-policy.ts';
import { DEFAULT_POLICY, type RolloutPolicy } from './rollout-policy.ts';

/** An entry of `spec.plans`. Each member that the entry sets must match the plan. */
type PlanEntry = NonNullable<UpgradePolicySpec['plans']>[number];

/**
 * The members of an entry, sorted by weight. Each member makes an entry more specific than all later members together.
 */
const MEMBERS = ['name', 'namespace', 'dialect'] as const;

/** Returns the policies that cover the plan, each with its most specific matching entry. The policy that applies comes first. */
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

/**
 * Returns the entry in words, such as `plans with namespace a, name b`, or `all` if the entry matches every plan. Equal entries give
 * equal text.
 */
export function describeEntry({ dialect, namespace, name }: PlanEntry, all: string): string {
  const given = Object.entries({ dialect, namespace, name }).flatMap(([member, value]) =>
    value === undefined ? [] : [`${member} ${value}`],
  );
  return given.length === 0 ? all : `plans with ${given.join(', ')}`;
}

/**
 * Returns all policies; undefined if the cluster does not have the kind. Rejects if the right to list them is missing,
 * because in this case the policies still apply.
 */
export async function listPolicies(
  client: KubeClient,
  abort: AbortSignal,
): Promise<UpgradePolicy[] | undefined> {
  return (await ifFound(client.listAll(upgradePolicies, { abort })))?.items;
}

/** What the reader of a policy knows in addition to the policy. */
interface PolicyReader {
  /** Only read-only commands pass it. */
  readonly world?: World | undefined;
  /**
   * The namespaces in which this process may create Jobs. If it is undefined, the process creates none. Then the
   * condition that the controller has written says whether the controller refuses the policy.
   */
  readonly jobs?: JobNamespaces | undefined;
}

/**
 * Returns the policy of a plan. If no UpgradePolicy covers the plan, `uncovered` applies. An invalid policy still
 * applies, together with its problems, because it may forbid something that a less specific policy allows.
 */
export function policyOfPlan<P extends KubeObject>(
  dialect: Pick<Dialect<P>, 'name' | 'planRules' | 'planObjects'>,
  policies: readonly UpgradePolicy[],
  plan: P,
  uncovered: RolloutPolicy = DEFAULT_POLICY,
  { world, jobs }: PolicyReader = {},
): RolloutPolicy {
  const [first] = coveringPolicies(policies, planRefOf(dialect, plan));
  const policy = first ? readFor(first.policy, jobs) : uncovered;
  const ruled = dialect.planRules?.apply(plan, policy, world) ?? policy;
  return world === undefined ? ruled : withRulesOfParts(dialect, plan, ruled, world);
}

function readFor(policy: UpgradePolicy, jobs: JobNamespaces | undefined): RolloutPolicy {
  if (jobs) return readPolicy(policy, jobs);
  const read = readPolicy(policy);
  const refusal = refusalIn(policy);
  if (read.problems.length > 0 || refusal === undefined) return read;
  const { name } = policy.metadata;
  return { ...read, problems: [because('PolicyUnreadable', `UpgradePolicy ${name}: ${refusal}`)] };
}

/** Returns the reason why the controller refuses the present spec of the policy; undefined if it has not refused it. */
function refusalIn({ metadata: { name, generation }, status }: UpgradePolicy): string | undefined {
  const accepted = status?.conditions?.find(({ type }) => type === 'Accepted');
  if (accepted?.status !== 'False' || accepted.observedGeneration !== generation) return undefined;
  return accepted.message?.replace(`UpgradePolicy ${name}: `, '');
}
