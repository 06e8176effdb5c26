/** Owns what gates are asked with, gathered for one target. */
import type { GateInput } from './gates/types.ts';
import type { Snapshot, Stage, Target, TargetFacts } from './model.ts';
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

/** Undefined where no limit asks for it: it looks at every node. */
export function censusFor(
  { fleet, campaign }: Snapshot,
  { maxUnavailable }: CampaignPolicy,
  chosen: readonly Target[] = [],
): NodeCensus | undefined {
  if (!fleet || maxUnavailable === undefined) return undefined;
  return censusOf(
    fleet,
    [...targetsIn(campaign, 'intended'), ...chosen].map(({ name }) => name),
  );
}
