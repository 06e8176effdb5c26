/** Owns what an UpgradePolicy's status tells: whether it can be read, which plans it counts for, and where another comes first. */
import type { UpgradePolicy } from '../../api/refit/upgrade-policy.ts';
import { withCondition } from '../../runtime/conditions.ts';
import { sameJson } from '../../util/json.ts';
import { coveringPolicies, type PlanRef } from './choose-policy.ts';
import { readPolicy } from './read-policy.ts';

/** So that a cluster with many plans does not fill the object. */
const MAX_TOLD = 100;

/** The policy with its status as of `now` in ms; the very same object where nothing changes. */
export function withStatus(
  policy: UpgradePolicy,
  policies: readonly UpgradePolicy[],
  plans: readonly PlanRef[],
  now: number,
): UpgradePolicy {
  const covers = plans.filter((plan) => firstFor(policies, plan) === policy);
  const ties = plans.flatMap((plan) => lostTie(policy, policies, plan) ?? []);
  const { problems } = readPolicy(policy);
  const observedGeneration = policy.metadata.generation;
  const generation = observedGeneration === undefined ? {} : { observedGeneration };
  const readable = {
    type: 'Readable',
    status: problems.length === 0 ? 'True' : 'False',
    reason: problems[0]?.code ?? 'Readable',
    message: problems.map(({ message }) => message).join('; ') || 'every field can be read',
    ...generation,
  } as const;
  const overruled = {
    type: 'Overruled',
    status: ties.length > 0 ? 'True' : 'False',
    reason: ties.length > 0 ? 'FirstByName' : 'NoTie',
    message: ties.slice(0, MAX_TOLD).join('; ') || 'no other policy names a plan as closely',
    ...generation,
  } as const;
  const known = policy.status?.conditions;
  const conditions = [...withCondition(withCondition(known, readable, now), overruled, now)];
  const status = { ...generation, covers: covers.slice(0, MAX_TOLD).map(titleOf), conditions };
  return sameJson(status, policy.status) ? policy : { ...policy, status };
}

function firstFor(policies: readonly UpgradePolicy[], plan: PlanRef): UpgradePolicy | undefined {
  return coveringPolicies(policies, plan)[0]?.policy;
}

/** A less close policy is overruled as people mean it to be; of two equal ones nobody can see which counts. */
function lostTie(policy: UpgradePolicy, policies: readonly UpgradePolicy[], plan: PlanRef): string | undefined {
  const covering = coveringPolicies(policies, plan);
  const [first] = covering;
  const mine = covering.find((each) => each.policy === policy);
  if (!first || !mine || mine === first || mine.rank !== first.rank) return undefined;
  const { name } = first.policy.metadata;
  return `UpgradePolicy ${name} names ${titleOf(plan)} as closely, and comes first by name`;
}

function titleOf({ dialect, namespace, name }: PlanRef): string {
  return [dialect, namespace, name].filter((part) => part !== undefined).join('/');
}
