/** Reads which nodes joined after a plan began, and whether the plan includes them. */
import type { Assessment } from '../assess/assess.ts';
import { includedReason, joinedNodes } from '../assess/joined-targets.ts';
import { factsOf } from '../gates/types.ts';
import { because, type Reason } from '../model/reasons.ts';
import { type Target, targetsIn } from '../model/rollout.ts';
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
  const takenUp = [...targetsIn(rollout, 'pending'), ...targetsIn(rollout, 'intended')].flatMap(
    (target) => {
      const created = Date.parse(factsOf(snapshot, target).created ?? '');
      return created > start
        ? [{ name: target.name, isIncluded: true, reason: reasonOf(assessment, target, created) }]
        : [];
    },
  );
  const others = joinedNodes(assessment).map(({ name, isIncluded, reason }) => ({
    name,
    isIncluded,
    reason,
  }));
  const all = new Map([...takenUp, ...others].map((each) => [each.name, each]));
  return [...all.values()];
}

/**
 * Returns the reason why a node that joined after the start is a target. If it is older than its place in the record,
 * the policy has included it. A younger node had been deleted, and joined again: it was a target before.
 */
function reasonOf(
  { policy }: Pick<Assessment, 'policy'>,
  { name, since }: Target,
  created: number,
): Reason {
  return policy.includesNew === true && created <= Date.parse(since)
    ? includedReason(name)
    : because('NodeIncluded', `${name} joined after the plan began, and is one of its targets`);
}
