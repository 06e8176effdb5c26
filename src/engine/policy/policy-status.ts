/** The status of an UpgradePolicy: whether it is valid, which plans it covers, and whether another one has the same entry. */
import type { UpgradePolicy } from '../../api/refit/upgrade-policy.ts';
import { type ConditionUpdate, withCondition } from '../../runtime/conditions.ts';
import { sameJson } from '../../util/json.ts';
import { coveringPolicies, type PlanRef } from './choose-policy.ts';
import { readPolicy } from './read-policy.ts';

/** What the status of a policy depends on. */
export interface PolicyContext {
  readonly policies: readonly UpgradePolicy[];
  /** The dialects of this process; it knows no other plans. */
  readonly dialects: readonly string[];
  readonly plans: readonly PlanRef[];
}

/** Limits the size of the object. */
const MAX_PLANS = 100;

/** `now` in ms. Returns the same object if nothing changes. */
export function withStatus(policy: UpgradePolicy, context: PolicyContext, now: number): UpgradePolicy {
  const known = policy.status?.conditions;
  const status = {
    ...generationOf(policy),
    covers: coveredBy(policy, context),
    conditions: [...withCondition(withCondition(known, readable(policy), now), conflicted(policy, context), now)],
  };
  return sameJson(status, policy.status) ? policy : { ...policy, status };
}

/** Plans of other dialects stay as other processes wrote them. */
function coveredBy(policy: UpgradePolicy, { policies, dialects, plans }: PolicyContext): string[] {
  const first = (plan: PlanRef): string | undefined => coveringPolicies(policies, plan)[0]?.policy.metadata.name;
  const ours = plans.filter((plan) => first(plan) === policy.metadata.name).map(titleOf);
  const others = (policy.status?.covers ?? []).filter((title) => !dialects.includes(title.split('/')[0] ?? ''));
  return [...ours, ...others].toSorted().slice(0, MAX_PLANS);
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
 * That a more specific policy applies instead is intended and no conflict. Of two policies with the same entry, the one that
 * does not apply says so. The answer must not depend on plans, because processes know different ones.
 */
function conflicted(policy: UpgradePolicy, { policies }: PolicyContext): ConditionUpdate {
  const earlier = policies.filter(({ metadata }) => metadata.name < policy.metadata.name);
  const lost = entriesOf(policy).flatMap((entry) => {
    const first = earlier.filter((each) => entriesOf(each).includes(entry)).map(({ metadata }) => metadata.name);
    return first.length > 0
      ? [`UpgradePolicy ${first.toSorted()[0]} applies to ${entry}: it has the same entry and comes first by name`]
      : [];
  });
  const found =
    lost.length > 0
      ? ({ status: 'True', reason: 'SameEntry', message: lost.join('; ') } as const)
      : ({ status: 'False', reason: 'NoConflict', message: 'no other policy has the same entry' } as const);
  return { type: 'Conflicted', ...found, ...generationOf(policy) };
}

/** The entries for people; equal entries give equal text. */
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
