/** Says why an UpgradePolicy applies to a plan: which of its entries names it. */
import { coveringPolicies, type PlanRef } from '../../engine/policy/choose-policy.ts';
import type { KubeObject } from '../../kube/types.ts';
import { type Policies, policyOf } from '../status/policies.ts';

export interface PolicyRule {
  readonly name: string;
  /** Why it applies, as half a sentence about the policy. */
  readonly rule: string;
}

/** Undefined if no policy covers the plan. */
export function policyRule(policies: Policies, dialect: string, plan: KubeObject): PolicyRule | undefined {
  const { name: held } = policyOf(policies, { name: dialect }, plan);
  if (held === undefined) return undefined;
  const { name, namespace } = plan.metadata;
  const ref: PlanRef = { dialect, namespace, name };
  const [first, ...others] = coveringPolicies(policies.list(), ref);
  const wider = others.map(({ policy }) => policy.metadata.name);
  const over = wider.length > 0 ? `, before ${wider.join(', ')}` : '';
  return { name: held, rule: `${entryOf(first?.rank ?? 0, ref)}${over}` };
}

/** The rank is a sum: see choose-policy.ts. */
function entryOf(rank: number, { dialect, namespace, name }: PlanRef): string {
  const given = [
    ...(rank % 2 === 1 ? [`dialect ${dialect}`] : []),
    ...(rank % 4 >= 2 ? [`namespace ${namespace}`] : []),
    ...(rank >= 4 ? [`name ${name}`] : []),
  ];
  return given.length === 0 ? 'covers every plan' : `covers plans with ${given.join(', ')}`;
}
