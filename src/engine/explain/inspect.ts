/**
 * Reads plans for commands that change nothing. They see the recorded state, and explain it with the decisions that a
 * leader would make now.
 */
import type { NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import { settle } from '../assess/advance.ts';
import { assess } from '../assess/assess.ts';
import { needsOf } from '../assess/needs.ts';
import { failureOf } from '../assess/target-failures.ts';
import { factsOf } from '../gates/types.ts';
import { describeOpening, isTimetableOpen, openingFor } from '../gates/window-open.ts';
import { answerOf } from '../model/asked.ts';
import type { Probe } from '../model/decision.ts';
import type { ReasonCode } from '../model/reasons.ts';
import { isFinal, targetsIn } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { needsBudgetPods } from '../schedule/fewest-first.ts';
import { type Command, commandsFor } from '../turn/commands.ts';
import { drainWarnings } from './drain-warnings.ts';
import { explainToPeople } from './explain.ts';
import { type PlanReading, readPlan } from './plan-reading.ts';
import { shownWaits } from './shown-waits.ts';

/**
 * Reads a plan from what a command has seen. The reading explains the recorded state, and not the next state, because
 * there may be no running controller that would record the next state. `runs` are those of the NodeRollout, if they are
 * known.
 */
export function readForPeople(
  snapshot: Snapshot,
  policy: RolloutPolicy,
  now: number,
  runs?: readonly NodeRolloutRun[],
): PlanReading {
  const assessment = assess(snapshot, policy, now);
  const upcoming = settle(assessment).snapshot.rollout;
  const { waits: allWaits, cordoned } = explainToPeople(assessment);
  const waits = shownWaits({ snapshot, policy: assessment.policy, upcoming }, allWaits);
  return readPlan(assessment, { waits, allWaits, cordoned, upcoming, runs });
}

/** A drain by the leader. `since` is its start in milliseconds since the Unix epoch. */
export interface DrainInProgress {
  readonly node: string;
  readonly since: number;
}

/** Whatever a command must ask before it can read a plan. */
export interface OpenQuestions {
  readonly probes: readonly Probe[];
  readonly drains: readonly DrainInProgress[];
}

/**
 * Returns the questions of the recorded state and of the next state. The next state is included, because a new plan
 * reaches its gates only in the next state.
 */
export function openQuestions(
  snapshot: Snapshot,
  policy: RolloutPolicy,
  now: number,
): OpenQuestions {
  const assessment = assess(snapshot, policy, now);
  return {
    probes: [
      ...needsOf(assessment).probes,
      ...explainToPeople(assessment).probes,
      ...needsOf(settle(assessment)).probes,
    ],
    drains: drainsIn(snapshot, policy, now),
  };
}

/**
 * Returns the nodes that the leader drains now. Only the leader knows when a drain began, so the time of the node's
 * report is used, which is close to that time. If the drain would then seem to have exceeded its deadline, a later time
 * is used.
 */
function drainsIn(
  { rollout, targets }: Snapshot,
  policy: RolloutPolicy,
  now: number,
): DrainInProgress[] {
  if (isFinal(rollout) || !policy.drain.enabled) return [];
  const earliest = now - policy.stepDeadlines.drain + 1000;
  return targetsIn(rollout, 'intended').flatMap((target): DrainInProgress[] => {
    const { observation, drainDelegation, node } = factsOf({ targets }, target);
    const isDrained =
      observation.kind === 'working' &&
      observation.waitsFor === 'drain' &&
      answerOf(drainDelegation) === true;
    if (!isDrained || !node?.unschedulable) return [];
    const began = Date.parse(observation.since);
    return [{ node: node.name, since: Math.max(Number.isNaN(began) ? now : began, earliest) }];
  });
}

/**
 * Returns true if a target has failed, and neither its node nor the record of the rollout says why. The same holds if
 * they say it only in words: a leader that gave the target up has the code of its reason, and the node does not.
 */
export function hasUnknownFailure(snapshot: Snapshot): boolean {
  const failed = targetsIn(snapshot.rollout, 'failed');
  return failed.some((target) => (failureOf(snapshot, target)?.code ?? UNTOLD) === UNTOLD);
}

/** The code of a failure whose cause has no code of its own. */
const UNTOLD: ReasonCode = 'TargetFailed';

/** Returns true if the order of the nodes depends on the pods that PodDisruptionBudgets cover, and these are not counted yet. */
export function needsPodCount(snapshot: Snapshot, policy: RolloutPolicy): boolean {
  return needsBudgetPods(snapshot, policy);
}

/**
 * Returns what may surprise people although it does not stop the plan, one sentence each: an opened window, drains that
 * may not end, and tools whose locks were not found. A sentence that one of the `known` warnings contains is left out.
 */
export function warningsOf(
  snapshot: Snapshot,
  policy: RolloutPolicy,
  now: number,
  known: readonly string[],
): string[] {
  const opening = openingFor(policy, snapshot.plan.controls, now);
  const opened =
    opening === undefined ? [] : [`${describeOpening(opening, policy)}: ${effectOf(policy, now)}`];
  const missing = (snapshot.outside.locks ?? [])
    .flatMap(({ notFound }) => notFound ?? [])
    .filter((sentence) => !known.some((warning) => warning.includes(sentence)));
  return [...opened, ...drainWarnings(snapshot, policy), ...missing];
}

/** Returns a clause that says what an opened window changes now. */
function effectOf(policy: RolloutPolicy, now: number): string {
  if (policy.blackouts.some(({ from, to }) => from <= now && now < to))
    return `nodes start although UpgradePolicy ${policy.name} has a blackout now`;
  if (isTimetableOpen(policy, now)) return 'until then, no node waits for a maintenance window';
  // The plan has windows of its own in some dialects, and the windows of the policy may be open.
  const whose = policy.windows.length === 0 ? 'the plan' : 'the policy';
  return `nodes start outside of the windows of ${whose}`;
}

/** Returns the commands that a leader would carry out now. */
export function commandsAt(
  snapshot: Snapshot,
  policy: RolloutPolicy,
  now: number,
): readonly Command[] {
  return commandsFor(assess(snapshot, policy, now));
}
