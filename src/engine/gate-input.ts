/** Owns what gates are asked with, gathered for one target. */
import type { Node } from '../kube/types.ts';
import { onceForEach } from '../util/memo.ts';
import type { GateInput } from './gates/types.ts';
import type { Campaign, Snapshot, Stage, Target, TargetFacts } from './model.ts';
import type { CampaignPolicy } from './policy/campaign-policy.ts';
import { censusOf, type NodeCensus } from './policy/node-census.ts';
import { targetsIn } from './stages.ts';

const ABSENT: TargetFacts = { exists: false, observation: { kind: 'none' } };

export function factsOf({ facts }: Pick<Snapshot, 'facts'>, target: Target): TargetFacts {
  return facts.get(target.key) ?? ABSENT;
}

/** `room` is the number of targets that may still start, this one included. */
export function gateInput(
  snapshot: Snapshot,
  stage: Stage,
  target: Target,
  room: number,
  policy: CampaignPolicy,
  now: number,
  census = censusFor(snapshot, policy),
): GateInput {
  const { controlPlane, others, orders, paceMs } = snapshot;
  const facts = factsOf(snapshot, target);
  return { stage, target, facts, controlPlane, others, orders, census, expectedMs: paceMs, room, policy, now };
}

/** Undefined where no limit asks for it. */
export function censusFor({ fleet, campaign }: Snapshot, { maxUnavailable }: CampaignPolicy): NodeCensus | undefined {
  return fleet && maxUnavailable !== undefined ? censuses(fleet)(campaign) : undefined;
}

/** It looks at every node, and each target in flight asks for it. */
const censuses = onceForEach((fleet: readonly Node[]) =>
  onceForEach((campaign: Campaign) =>
    censusOf(
      fleet,
      targetsIn(campaign, 'intended').map(({ name }) => name),
    ),
  ),
);
