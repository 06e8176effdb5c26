/** What a decision looks at, and the gates' input for one target. */
import type { Node } from '../../kube/types.ts';
import { onceForEach } from '../../util/memo.ts';
import type { Snapshot, TargetFacts } from '../model/decision.ts';
import { type Rollout, type Stage, stagesBefore, type Target, targetsIn } from '../model/recorded.ts';
import { censusOf, type NodeCensus } from '../policy/node-census.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import type { GateInput } from './types.ts';

const ABSENT: TargetFacts = { exists: false, observation: { kind: 'none' } };

export function factsOf({ facts }: Pick<Snapshot, 'facts'>, target: Target): TargetFacts {
  return facts.get(target.key) ?? ABSENT;
}

/** Everything that one decision looks at. */
export interface DecisionContext {
  readonly snapshot: Snapshot;
  readonly policy: RolloutPolicy;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
}

export interface TargetContext extends DecisionContext {
  readonly stage: Stage;
  readonly target: Target;
}

/** `room` is the number of targets that may still start, this one included. */
export function gateInput(
  context: TargetContext,
  room: number,
  census = censusFor(context.snapshot, context.policy),
): GateInput {
  const { snapshot, stage, target, policy, now } = context;
  const { rollout, controlPlane, apiServers, foreignWork, controls, paceMs } = snapshot;
  const [facts, earlier] = [factsOf(snapshot, target), stagesBefore(rollout, stage)];
  const observed = { facts, controlPlane, apiServers, foreignWork, controls, census, expectedMs: paceMs };
  return { stage, target, earlier, ...observed, room, policy, now };
}

/** Undefined if the policy has no maxUnavailable. */
export function censusFor({ fleet, rollout }: Snapshot, { maxUnavailable }: RolloutPolicy): NodeCensus | undefined {
  return fleet && maxUnavailable !== undefined ? censuses(fleet)(rollout) : undefined;
}

/** Computed once per fleet and rollout: it reads every node, and each target in flight needs it. */
const censuses = onceForEach((fleet: readonly Node[]) =>
  onceForEach((rollout: Rollout) =>
    censusOf(
      fleet,
      targetsIn(rollout, 'intended').map(({ name }) => name),
    ),
  ),
);
