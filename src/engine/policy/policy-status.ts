/** Owns what an UpgradePolicy's status tells: whether it can be read, which plans it counts for, and where another comes first. */
import type { UpgradePolicy } from '../../api/refit/upgrade-policy.ts';
import { type ConditionUpdate, withCondition } from '../../runtime/conditions.ts';
import { sameJson } from '../../util/json.ts';
import { coveringPolicies, type PlanRef } from './choose-policy.ts';
import { readPolicy } from './read-policy.ts';

/** Whatever a process knows that tells of policies. */
export interface Surroundings {
  readonly policies: readonly UpgradePolicy[];
  /** What this process carries out: of other plans it cannot tell. */
  readonly dialects: readonly string[];
  readonly plans: readonly PlanRef[];
}

/** So that a cluster with many plans does not fill the object. */
const MAX_TOLD = 100;

/** The policy with its status as of `now` in ms; the very same object where nothing changes. */
export function withStatus(policy: UpgradePolicy, surroundings: Surroundings, now: number): UpgradePolicy {
  const known = policy.status?.conditions;
  const status = {
    ...generationOf(policy),
    covers: coveredBy(policy, surroundings),
    conditions: [...withCondition(withCondition(known, readable(policy), now), conflicted(policy, surroundings), now)],
  };
  return sameJson(status, policy.status) ? policy : { ...policy, status };
}

/** Plans of other dialects stay as whoever carries them out told them. */
function coveredBy(policy: UpgradePolicy, { policies, dialects, plans }: Surroundings): string[] {
  const first = (plan: PlanRef): string | undefined => coveringPolicies(policies, plan)[0]?.policy.metadata.name;
  const ours = plans.filter((plan) => first(plan) === policy.metadata.name).map(titleOf);
  const others = (policy.status?.covers ?? []).filter((title) => !dialects.includes(title.split('/')[0] ?? ''));
  return [...ours, ...others].toSorted().slice(0, MAX_TOLD);
}

function readable(policy: UpgradePolicy): ConditionUpdate {
  const { problems } = readPolicy(policy);
  const [first] = problems;
  const more = generationOf(policy);
  if (!first) return { type: 'Accepted', status: 'True', reason: 'Accepted', message: 'every field is valid', ...more };
  const message = problems.map((each) => each.message).join('; ');
  return { type: 'Accepted', status: 'False', reason: first.code, message, ...more };
}

/**
 * A policy that names plans less closely is overruled as people mean it to be. Of two with the same entry nobody can see
 * which one counts, so the other says so. Plans do not matter here: every process must come to the same answer.
 */
function conflicted(policy: UpgradePolicy, { policies }: Surroundings): ConditionUpdate {
  const earlier = policies.filter(({ metadata }) => metadata.name < policy.metadata.name);
  const lost = entriesOf(policy).flatMap((entry) => {
    const first = earlier.filter((each) => entriesOf(each).includes(entry)).map(({ metadata }) => metadata.name);
    return first.length > 0
      ? [`for ${entry} UpgradePolicy ${first.toSorted()[0]} counts, which comes first by name`]
      : [];
  });
  const more = generationOf(policy);
  if (lost.length > 0)
    return { type: 'Conflicted', status: 'True', reason: 'SameEntry', message: lost.join('; '), ...more };
  return {
    type: 'Conflicted',
    status: 'False',
    reason: 'NoConflict',
    message: 'no other policy has the same entry',
    ...more,
  };
}

/** What the policy is for, in words that are equal where the entries are. */
function entriesOf({ spec: { plans = [{}] } }: UpgradePolicy): string[] {
  return plans.map(({ dialect, namespace, name }) => {
    const given = Object.entries({ dialect, namespace, name }).flatMap(([member, value]) =>
      value === undefined ? [] : [`${member} ${value}`],
    );
    return given.length === 0 ? 'all plans' : `plans with ${given.join(', ')}`;
  });
}

function generationOf({ metadata: { generation } }: UpgradePolicy): { observedGeneration?: number } {
  return generation === undefined ? {} : { observedGeneration: generation };
}

function titleOf({ dialect, namespace, name }: PlanRef): string {
  return [dialect, namespace, name].filter((part) => part !== undefined).join('/');
}
