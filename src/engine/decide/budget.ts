/** Counts failures against the failure budget, and says what stops a rollout. */
import { factsOf } from '../gates/types.ts';
import type { Snapshot } from '../model/decision.ts';
import type { Reason } from '../model/reasons.ts';
import type { RecordedState, Stage, Target } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

export const FAILURES: readonly RecordedState[] = ['failed', 'missing', 'unsupported'];

/** True if nothing new may start: the rollout is aborted, its failure budget is used up, or the plan is now invalid. */
export function isStopping(snapshot: Snapshot, policy: RolloutPolicy): boolean {
  const { rollout, controls } = snapshot;
  return (
    controls.abort !== undefined || isOverBudget(snapshot, policy) || rollout.problems.length > 0
  );
}

/** A failed controller stops the rollout: the next one could cost the quorum. */
export function isOverBudget(snapshot: Snapshot, policy: RolloutPolicy): boolean {
  const { rollout } = snapshot;
  const namesIn = (stage: Stage) =>
    failedIn(snapshot, stage).map(({ name }) => `${stage.role} ${name}`);
  const counted = rollout.stages.filter(({ failedHoldSlots }) => failedHoldSlots !== true);
  // Once for all commands.
  const failures = new Set(counted.flatMap(namesIn));
  if (failures.size > policy.maxFailures || (rollout.reason && stops(rollout.reason, policy)))
    return true;
  return counted.some(
    (stage) => stage.role === 'controller' && failedIn(snapshot, stage).length > 0,
  );
}

export function stops({ code }: Reason, { drain }: RolloutPolicy): boolean {
  return code === 'DrainTooLong' && drain.onDeadline === 'stop';
}

function failedIn(snapshot: Snapshot, { targets }: Stage): Target[] {
  return targets.filter(
    (target) => FAILURES.includes(target.state) || isUnsettled(snapshot, target),
  );
}

/** True while a node in progress reports a roll-back that did not work: if it is Ready, its service may still restart. */
export function isUnsettled(snapshot: Snapshot, target: Target): boolean {
  const { observation, ready } = factsOf(snapshot, target);
  if (observation.kind !== 'failed' || ready === false) return false;
  return target.state === 'intended' && observation.report?.rolledBack === false;
}
