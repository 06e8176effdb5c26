/** Counts failures against the failure budget, and decides what stops a rollout. */
import { counted, listed } from '../../util/phrases.ts';
import { factsOf } from '../gates/types.ts';
import type { Snapshot } from '../model/decision.ts';
import type { Reason } from '../model/reasons.ts';
import { type RecordedState, type Stage, type Target, targetsIn } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

export const FAILURES: readonly RecordedState[] = ['failed', 'missing', 'unsupported'];

/**
 * Returns true if nothing new may start: the rollout is aborted, its failure budget is used up, or
 * the plan is now invalid.
 */
export function isStopping(
  snapshot: Snapshot,
  policy: RolloutPolicy,
  overBudget = isOverBudget(snapshot, policy),
): boolean {
  const { rollout, controls } = snapshot;
  return controls.abort !== undefined || overBudget || rollout.problems.length > 0;
}

/**
 * Returns true if the failures use up the failure budget. A failed controller always does, because the loss of the next one could
 * cost the quorum.
 */
export function isOverBudget(snapshot: Snapshot, policy: RolloutPolicy): boolean {
  const { rollout } = snapshot;
  const failures = countedFailures(snapshot);
  if (isOverBlocked(snapshot, policy)) return true;
  if (failures.length > policy.maxFailures || (rollout.reason && stops(rollout.reason, policy)))
    return true;
  return failures.some(({ role }) => role === 'controller');
}

/** Returns true if more nodes were skipped than the policy allows, while others could still start. */
function isOverBlocked({ rollout }: Snapshot, { maxBlocked }: RolloutPolicy): boolean {
  if (maxBlocked === undefined || targetsIn(rollout, 'pending').length === 0) return false;
  return targetsIn(rollout, 'skipped').length > maxBlocked;
}

/**
 * Returns which limit the failures use up, which failures they are, and what lifts the limit; undefined unless failures stop the
 * rollout.
 */
export function describeUsedUpBudget(
  snapshot: Snapshot,
  policy: RolloutPolicy,
): { readonly message: string; readonly lifts: string } | undefined {
  if (!isOverBudget(snapshot, policy)) return undefined;
  if (isOverBlocked(snapshot, policy)) {
    const skipped = targetsIn(snapshot.rollout, 'skipped').map(({ name }) => name);
    return {
      message: `${counted(skipped.length, 'node')} could not be drained (${listed(skipped)}), more than maxBlockedNodes ${policy.maxBlocked} of UpgradePolicy ${policy.name} allows`,
      lifts: `the skipped nodes are tried again (refit retry --skipped), or maxBlockedNodes is ${skipped.length} or more while the plan runs`,
    };
  }
  const failures = countedFailures(snapshot);
  const retried = 'the failed node is tried again (refit retry NODE)';
  const controllers = failures.filter(({ role }) => role === 'controller');
  if (controllers.length > 0)
    return {
      message: `a failed controller (${listed(controllers.map(({ name }) => name))}) stops the plan, whatever failureBudget says`,
      lifts: retried,
    };
  if (failures.length <= policy.maxFailures)
    return {
      message: `drain.onDeadline: Stop of UpgradePolicy ${policy.name} ends the plan at a drain that takes too long`,
      lifts: retried,
    };
  const names = listed(failures.map(({ name }) => name));
  return {
    message: `${counted(failures.length, 'node')} failed (${names}), more than ${budgetOf(policy)} allows`,
    lifts: `${retried}, or failureBudget is ${failures.length} or more while the plan runs`,
  };
}

/**
 * Returns which limit a failed rollout has used up, and which targets never started because of it; undefined for any other
 * rollout.
 */
export function describeEndByBudget(snapshot: Snapshot, policy: RolloutPolicy): string | undefined {
  const { rollout, controls } = snapshot;
  // Only pending targets never started because of the limit.
  const names = targetsIn(rollout, 'pending').map(({ name }) => name);
  const isAborted = controls.abort !== undefined || rollout.reason?.code === 'Aborted';
  if (rollout.phase !== 'failed' || names.length === 0 || isAborted) return undefined;
  const budget = describeUsedUpBudget(snapshot, policy);
  if (budget === undefined) return undefined;
  return `${budget.message}, so ${listed([...new Set(names)], MOST_NAMES)} never started`;
}

const MOST_NAMES = 8;

/** Returns the limit in words, such as `failureBudget 1 of UpgradePolicy nightly`. */
export function budgetOf({ maxFailures, name }: RolloutPolicy): string {
  return name === undefined
    ? `failureBudget ${maxFailures} (the default, since no UpgradePolicy applies)`
    : `failureBudget ${maxFailures} of UpgradePolicy ${name}`;
}

/** Returns the failures that count. A node counts once for each role, even if several commands of the plan name it. */
function countedFailures(snapshot: Snapshot): readonly Pick<Target & Stage, 'name' | 'role'>[] {
  const stages = snapshot.rollout.stages.filter(({ failedHoldSlots }) => failedHoldSlots !== true);
  const failures = stages.flatMap((stage) =>
    failedIn(snapshot, stage).map(
      ({ name }) => [`${stage.role} ${name}`, { name, role: stage.role }] as const,
    ),
  );
  return [...new Map(failures).values()];
}

/** Returns true if this failure alone stops the rollout, whatever the failure budget allows. */
export function stops({ code }: Reason, { drain }: RolloutPolicy): boolean {
  return code === 'DrainTooLong' && drain.onDeadline === 'stop';
}

function failedIn(snapshot: Snapshot, { targets }: Stage): Target[] {
  return targets.filter(
    (target) => FAILURES.includes(target.state) || isUnsettled(snapshot, target),
  );
}

/**
 * Returns true while a node in progress reports that its roll-back did not work. If such a node is Ready, its service may still
 * restart.
 */
export function isUnsettled(snapshot: Snapshot, target: Target): boolean {
  // This check comes first, because facts are gathered only when they are asked for, and most targets are not in progress.
  if (target.state !== 'intended') return false;
  const { observation, ready } = factsOf(snapshot, target);
  return (
    observation.kind === 'failed' && ready !== false && observation.report?.rolledBack === false
  );
}
