/** Counts failures against the failure budget, and decides what stops a rollout. */
import { onceForEach } from '../../util/memo.ts';
import { counted, listed } from '../../util/phrases.ts';
import { factsOf } from '../gates/types.ts';
import { because, type Reason } from '../model/reasons.ts';
import {
  inState,
  type RecordedState,
  type Rollout,
  type Stage,
  type Target,
  targetsIn,
} from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { nodeRetriedBy, skippedRetriedBy } from '../model/tried-again.ts';
import { failuresAllowed, type RolloutPolicy } from '../policy/rollout-policy.ts';
import { awaitedRetries, holdingRetries } from '../schedule/awaited-retries.ts';
import { wavesOf } from '../schedule/waves.ts';

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
  const { rollout } = snapshot;
  const { controls } = snapshot.plan;
  if (controls.abort !== undefined || overBudget || rollout.problems.length > 0) return true;
  return retriesThatHold(snapshot, policy).length > 0;
}

/** The limit that stops a rollout, and the failures or nodes that exceed it. */
type UsedUpLimit =
  | {
      readonly kind: 'skipped' | 'controllers' | 'consecutive' | 'plan';
      readonly names: readonly string[];
    }
  | ({ readonly kind: 'wave' } & OverfullWave)
  | { readonly kind: 'drain' };

/**
 * Returns the limit that the rollout has used up; undefined if failures do not stop the rollout. A failed controller
 * always stops the rollout, because the loss of another controller could cost the quorum. If several limits are used
 * up, the first limit in the order of this function is returned.
 */
function usedUpLimit(snapshot: Snapshot, policy: RolloutPolicy): UsedUpLimit | undefined {
  const { rollout } = snapshot;
  if (isOverBlocked(snapshot, policy))
    return { kind: 'skipped', names: namesOf(targetsIn(rollout, 'skipped')) };
  const failures = countedFailures(snapshot, policy);
  const controllers = failures.filter(({ role }) => role === 'controller');
  if (controllers.length > 0) return { kind: 'controllers', names: namesOf(controllers) };
  const overfull = overfullWave(snapshot, policy);
  if (overfull) return { kind: 'wave', ...overfull };
  const { maxConsecutiveFailures = Number.POSITIVE_INFINITY } = policy;
  const last = lastFailures(snapshot, policy);
  if (last.length > maxConsecutiveFailures) return { kind: 'consecutive', names: namesOf(last) };
  if (outsideOfWaves(snapshot, policy, failures).length > policy.maxFailures)
    return { kind: 'plan', names: namesOf(failures) };
  const isStopped = isStoppedByReason(rollout, policy) && !areAllRetried(snapshot, policy);
  return isStopped ? { kind: 'drain' } : undefined;
}

function namesOf(targets: readonly Pick<Target, 'name'>[]): string[] {
  return targets.map(({ name }) => name);
}

/** Returns true if the failures of the rollout use up a limit of the policy, so that nothing new may start. */
export function isOverBudget(snapshot: Snapshot, policy: RolloutPolicy): boolean {
  return usedUpLimit(snapshot, policy) !== undefined;
}

/**
 * Returns the policy with `maxFailures` computed from its percentage and the number of workers of this rollout; the same object if the
 * policy has no percentage.
 */
export function withBudgetOf(rollout: Rollout, policy: RolloutPolicy): RolloutPolicy {
  const { maxFailuresPercent: percent } = policy;
  return percent === undefined ? policy : withShare(policy)(rollout.stages);
}

/** Returns the policy for the stages of a rollout. It is computed once for each rollout, because the computation reads all targets. */
const withShare = onceForEach((policy: RolloutPolicy) =>
  onceForEach((stages: readonly Stage[]): RolloutPolicy => {
    const workers = stages.filter(({ role }) => role === 'worker');
    const size = countWorkers(workers);
    const maxFailures = failuresAllowed({ percent: policy.maxFailuresPercent ?? 0 }, size);
    return { ...policy, maxFailures };
  }),
);

/** Returns how many different workers the stages have. A worker that several stages name counts once. */
function countWorkers(stages: readonly Stage[]): number {
  const [first, ...others] = stages;
  if (first && others.length === 0)
    return first.targets.length + (first.chosenElsewhere?.gone?.count ?? 0);
  return new Set(stages.flatMap(({ targets }) => targets.map(({ name }) => name))).size;
}

/** A wave whose own failure budget is used up. `wave` is its number, counted from 1. */
interface OverfullWave {
  readonly wave: number;
  readonly budget: number;
  readonly names: readonly string[];
}

function overfullWave(snapshot: Snapshot, policy: RolloutPolicy): OverfullWave | undefined {
  for (const stage of snapshot.rollout.stages) {
    // Most stages have no failure. The waves of such a stage are not computed.
    if (failedIn(snapshot, policy, stage).length === 0) continue;
    const { members = [], budgets = [] } = wavesOf({ snapshot, policy }, stage) ?? {};
    for (const [index, budget] of budgets.entries()) {
      if (budget === undefined) continue;
      const failed = failedIn(snapshot, policy, { targets: members[index] ?? [] });
      if (failed.length > budget)
        return { wave: index + 1, budget, names: failed.map(({ name }) => name) };
    }
  }
  return undefined;
}

/**
 * Returns the failures that count against the budget of the plan. Failures in a wave with its own budget are left out.
 */
function outsideOfWaves<F extends Pick<Target, 'name'>>(
  snapshot: Snapshot,
  policy: RolloutPolicy,
  failures: readonly F[],
): readonly F[] {
  if (failures.length === 0) return failures;
  if (!policy.waves?.some(({ maxFailures }) => maxFailures !== undefined)) return failures;
  const inWaves = new Set(
    snapshot.rollout.stages.flatMap((stage) => {
      const { members = [], budgets = [] } = wavesOf({ snapshot, policy }, stage) ?? {};
      return members.flatMap((wave, index) =>
        budgets[index] === undefined ? [] : wave.map(({ name }) => name),
      );
    }),
  );
  return failures.filter(({ name }) => !inWaves.has(name));
}

/** Returns the workers that failed since the last success of a worker. */
function lastFailures(snapshot: Snapshot, policy: RolloutPolicy): readonly Target[] {
  const { rollout } = snapshot;
  const stages = rollout.stages.filter(({ role }) => role === 'worker');
  const failed = targetsIn({ stages }, 'failed');
  if (failed.length === 0) return failed;
  const awaited = awaitedKeys(snapshot, policy);
  const successes = targetsIn({ stages }, 'done').map(({ since }) => Date.parse(since));
  const lastSuccess = successes.reduce((last, time) => Math.max(last, time), 0);
  return failed.filter(({ since, key }) => Date.parse(since) > lastSuccess && !awaited.has(key));
}

/** Returns true if more nodes were skipped than the policy allows, and other nodes could still start. */
function isOverBlocked({ rollout }: Snapshot, { maxBlocked }: RolloutPolicy): boolean {
  if (maxBlocked === undefined || targetsIn(rollout, 'pending').length === 0) return false;
  return targetsIn(rollout, 'skipped').length > maxBlocked;
}

/**
 * Returns the reason if skipped nodes stop the rollout; otherwise undefined. The rollout ends with this reason, because
 * it has no failed target whose reason it could use.
 */
export function tooManyBlocked(snapshot: Snapshot, policy: RolloutPolicy): Reason | undefined {
  const limit = usedUpLimit(snapshot, policy);
  return limit?.kind === 'skipped'
    ? because('Stopped', describeSkipped(limit.names, policy))
    : undefined;
}

function describeSkipped(names: readonly string[], { maxBlocked, name }: RolloutPolicy): string {
  const were = names.length === 1 ? 'was' : 'were';
  return `${counted(names.length, 'node')} could not be drained or ${were} held (${listed(names)}), more than maxBlockedNodes ${maxBlocked} of UpgradePolicy ${name} allows`;
}

/**
 * Returns which limit is used up, which failures caused that, and how people can raise the limit; undefined if failures
 * do not stop the rollout.
 */
export function describeUsedUpBudget(
  snapshot: Snapshot,
  policy: RolloutPolicy,
): { readonly message: string; readonly lifts: string } | undefined {
  const limit = usedUpLimit(snapshot, policy);
  return limit && describeLimit(limit, snapshot, policy);
}

function describeLimit(limit: UsedUpLimit, { abilities }: Snapshot, policy: RolloutPolicy) {
  const retried = `the failed node is tried again (${nodeRetriedBy(abilities)})`;
  if (limit.kind === 'drain')
    return {
      message: `drain.onDeadline: Stop of UpgradePolicy ${policy.name} ends the plan at a drain that takes too long`,
      lifts: retried,
    };
  const { kind, names } = limit;
  const { length } = names;
  const shown = listed(names);
  const orMore = (field: string): string =>
    `${retried}, or ${field} is ${length} or more while the plan runs`;
  switch (kind) {
    case 'skipped':
      return {
        message: describeSkipped(names, policy),
        lifts: `the skipped nodes are tried again (${skippedRetriedBy(abilities)}), or maxBlockedNodes is ${length} or more while the plan runs`,
      };
    case 'controllers':
      return {
        message: `a failed controller (${shown}) stops the plan, even if failureBudget allows a failure`,
        lifts: retried,
      };
    case 'wave':
      return {
        message: `${counted(length, 'node')} of wave ${limit.wave} failed (${shown}), more than its failureBudget ${limit.budget} in UpgradePolicy ${policy.name} allows`,
        lifts: orMore('the failureBudget of the wave'),
      };
    case 'consecutive':
      return {
        message: `${counted(length, 'node')} failed one after the other (${shown}), more than maxConsecutiveFailures ${policy.maxConsecutiveFailures} of UpgradePolicy ${policy.name} allows`,
        lifts: orMore('maxConsecutiveFailures'),
      };
    case 'plan':
      return {
        message: `${counted(length, 'node')} failed (${shown}), more than ${budgetOf(policy)} allows`,
        lifts: orMore('failureBudget'),
      };
  }
}

/** The end of a rollout because of failures: the limit that they used up, as a clause, and the targets that never started. */
export interface EndByBudget {
  readonly limit: string;
  readonly unstarted: readonly string[];
}

/** Returns why targets of a failed rollout never started; undefined for any other rollout. */
export function endByBudget(snapshot: Snapshot, policy: RolloutPolicy): EndByBudget | undefined {
  const { rollout } = snapshot;
  const { controls } = snapshot.plan;
  // A target that never started because of the limit is still pending.
  const names = targetsIn(rollout, 'pending').map(({ name }) => name);
  const isAborted = controls.abort !== undefined || rollout.reason?.code === 'Aborted';
  if (rollout.phase !== 'failed' || names.length === 0 || isAborted) return undefined;
  const limit = describeUsedUpBudget(snapshot, policy)?.message ?? formerLimit(rollout, policy);
  return limit === undefined ? undefined : { limit, unstarted: [...new Set(names)] };
}

/**
 * Returns a clause about a rollout that its failures have ended, although the present policy allows them: the limits
 * were stricter then, or a leader without policies ended the rollout. Undefined if something else has ended it.
 */
function formerLimit(rollout: Rollout, policy: RolloutPolicy): string | undefined {
  const names = targetsIn(rollout, 'failed').map(({ name }) => name);
  const isCause = rollout.reason?.about?.some((name) => names.includes(name)) === true;
  if (!isCause) return undefined;
  return `${counted(names.length, 'node')} failed (${listed(names)}) and the plan ended, although ${budgetOf(policy)} allows that now`;
}

/** Returns the limit in words, such as `failureBudget 1 of UpgradePolicy nightly`. */
export function budgetOf({ maxFailures, maxFailuresPercent, name }: RolloutPolicy): string {
  if (maxFailuresPercent !== undefined)
    return `failureBudget ${maxFailuresPercent}% (${counted(maxFailures, 'node')}) of UpgradePolicy ${name}`;
  return name === undefined
    ? `failureBudget ${maxFailures} (the default, since no UpgradePolicy applies)`
    : `failureBudget ${maxFailures} of UpgradePolicy ${name}`;
}

/**
 * Returns the retries during which no other target may start. The rollout does not end before these retries, because the failures of their
 * targets do not count yet.
 */
export function retriesThatHold(snapshot: Snapshot, policy: RolloutPolicy) {
  return holdingRetries(snapshot, policy, isStoppedByReason(snapshot.rollout, policy));
}

function isStoppedByReason({ reason }: Rollout, policy: RolloutPolicy): boolean {
  return reason !== undefined && stops(reason, policy);
}

/**
 * Returns true if each failed target can be retried. The reason of a rollout does not name the target that caused this
 * reason. So every failed target that cannot be retried may be the target that stopped the rollout.
 */
function areAllRetried(snapshot: Snapshot, policy: RolloutPolicy): boolean {
  const awaited = awaitedKeys(snapshot, policy);
  return awaited.size > 0 && awaited.size === targetsIn(snapshot.rollout, 'failed').length;
}

function awaitedKeys(snapshot: Snapshot, policy: RolloutPolicy): ReadonlySet<string> {
  return new Set(awaitedRetries(snapshot, policy).map(({ target }) => target.key));
}

/**
 * Returns the failures of targets that will not be retried. Only these failures count. A node counts once for each
 * role, even if several commands of the plan name it.
 */
function countedFailures(
  snapshot: Snapshot,
  policy: RolloutPolicy,
): readonly Pick<Target & Stage, 'name' | 'role'>[] {
  const stages = snapshot.rollout.stages.filter(({ failedHoldSlots }) => failedHoldSlots !== true);
  const failures = stages.flatMap((stage) =>
    failedIn(snapshot, policy, stage).map(
      ({ name }) => [`${stage.role} ${name}`, { name, role: stage.role }] as const,
    ),
  );
  return [...new Map(failures).values()];
}

/** Returns true if a failure for this reason alone stops the rollout, even if the failure budget is not used up. */
export function stops({ code }: Reason, { drain }: RolloutPolicy): boolean {
  return code === 'DrainTooLong' && drain.onDeadline === 'stop';
}

function failedIn(
  snapshot: Snapshot,
  policy: RolloutPolicy,
  { targets }: Pick<Stage, 'targets'>,
): Target[] {
  // The targets are looked up by state, because they are grouped by state already and most of them are in no failed state.
  const recorded = FAILURES.flatMap((state) => inState({ targets }, state));
  const unsettled = inState({ targets }, 'intended').filter((each) => isUnsettled(snapshot, each));
  if (recorded.length + unsettled.length === 0) return [];
  const awaited = awaitedKeys(snapshot, policy);
  const counted = recorded.filter(({ key }) => !awaited.has(key));
  const failed = new Set([...counted, ...unsettled]);
  return targets.filter((target) => failed.has(target));
}

/**
 * Returns true if a node in progress reports that its roll-back did not work. Even if such a node is Ready, its service
 * may still restart.
 */
export function isUnsettled(snapshot: Snapshot, target: Target): boolean {
  // The state is checked first, because most targets are not in progress, and the facts of a target are gathered only when they are read.
  if (target.state !== 'intended') return false;
  const { observation, ready } = factsOf(snapshot, target);
  return (
    observation.kind === 'failed' && ready !== false && observation.report?.rolledBack === false
  );
}
