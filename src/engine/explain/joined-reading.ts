/** Reads which nodes joined after a plan began, and whether the plan includes them. */
import type { Assessment } from '../assess/assess.ts';
import { includedReason, joinedNodes } from '../assess/joined-targets.ts';
import { factsOf } from '../gates/types.ts';
import type { Reason } from '../model/reasons.ts';
import { targetsIn } from '../model/rollout.ts';
import type { RunReading } from './run-reading.ts';

/** A node that joined after the plan began. `reason` says whether it is included, and what to do if it is not. */
export interface JoinedReading {
  readonly name: string;
  readonly isIncluded: boolean;
  readonly reason: Reason;
}

/**
 * Returns the nodes that joined after the run started, and that the plan has not upgraded yet. Returns no nodes for a
 * plan that does not run, and if such nodes become targets by themselves in this dialect.
 */
export function readJoined(assessment: Assessment, run: RunReading): JoinedReading[] {
  const { snapshot } = assessment;
  const { rollout } = snapshot;
  if (snapshot.plan.joined === undefined || rollout.phase !== 'running') return [];
  const start = Date.parse(run.started());
  const takenUp = [...targetsIn(rollout, 'pending'), ...targetsIn(rollout, 'intended')]
    .filter((target) => Date.parse(factsOf(snapshot, target).created ?? '') > start)
    .map(({ name }) => ({ name, isIncluded: true, reason: includedReason(name) }));
  const others = joinedNodes(assessment).map(({ name, isIncluded, reason }) => ({
    name,
    isIncluded,
    reason,
  }));
  const all = new Map([...takenUp, ...others].map((each) => [each.name, each]));
  return [...all.values()];
}
