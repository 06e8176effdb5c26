/** Gate: a policy may pin nodes to a version. A plan with another version continues with the other nodes. */
import type { TargetFacts } from '../model/facts.ts';
import { because, type Reason } from '../model/reasons.ts';
import type { Stage, Target } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { type Pinned, pinAgainst } from './pins.ts';
import { type Gate, PASS, wait } from './types.ts';

export const notPinned: Gate = {
  name: 'not-pinned',
  isOfTargetAlone: true,
  evaluate({ stage, target: { name }, facts, policy }) {
    const pin = pinAgainst(policy, stage, facts);
    if (pin === undefined) return PASS;
    const field = `spec.versions.pin[${pin.index}]`;
    if (pin.conflict !== undefined)
      return wait(
        'PolicyUnreadable',
        `UpgradePolicy ${policy.name}: ${field} and pin[${pin.conflict}] select ${name} with different versions; each node may have one`,
        'the policy pins the node to one version',
      );
    return wait(
      'Pinned',
      pinnedSentence(name, pin, stage, policy),
      `the pin of UpgradePolicy ${policy.name} is removed or allows ${stage.version}`,
    );
  },
};

/** Returns why a pin keeps the target from the version of its stage; undefined if none does, or if pins contradict each other. */
export function pinOf(
  policy: RolloutPolicy,
  stage: Stage,
  { name }: Pick<Target, 'name'>,
  facts: TargetFacts,
): Reason | undefined {
  const pin = pinAgainst(policy, stage, facts);
  return pin === undefined || pin.conflict !== undefined
    ? undefined
    : because('Pinned', pinnedSentence(name, pin, stage, policy));
}

function pinnedSentence(
  node: string,
  pin: Pinned,
  stage: Pick<Stage, 'version'>,
  policy: Pick<RolloutPolicy, 'name'>,
): string {
  return `${node} is pinned to ${pin.version} by spec.versions.pin[${pin.index}] of UpgradePolicy ${policy.name}, and the plan upgrades to ${stage.version}`;
}
