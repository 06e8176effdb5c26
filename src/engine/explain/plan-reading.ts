/**
 * Reads a plan once for people. The NodeRollout, the notifications, the conditions, and all outputs of `refit` about a
 * plan are made from this reading, so they cannot contradict each other. No decision depends on it.
 */
import { MOST, type NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import type { CheckResult } from '../../health/checks.ts';
import type { HookResult } from '../../hooks/rules.ts';
import { zoneOf } from '../../util/maintenance-windows.ts';
import { onlyOnce } from '../../util/memo.ts';
import type { WayBack } from '../../versions/way-back.ts';
import type { Assessment } from '../assess/assess.ts';
import { type EndByBudget, endByBudget, FAILURES } from '../assess/budget.ts';
import { isRestartDue, type PlanEnd, shownEndOf, signalledVersions } from '../assess/ended.ts';
import { type RollBackVerdict, rollBackVerdict } from '../assess/roll-back.ts';
import { failureOf } from '../assess/target-failures.ts';
import { failedPlanHooks, planHookRuns } from '../gates/hook-runs.ts';
import type { Cordoned, Wait } from '../model/decision.ts';
import type { Reason, ReasonCode } from '../model/reasons.ts';
import {
  inState,
  isFinal,
  type Rollout,
  type RolloutWork,
  type Source,
  type Target,
  targetsIn,
} from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { failedChecks } from '../reasons/health-check.ts';
import { unapprovedWaves } from '../schedule/wave-approval.ts';
import { wavesOf } from '../schedule/waves.ts';
import { settledNames } from '../turn/choose-hooks.ts';
import { type DecidedReading, readDecided } from './decided-reading.ts';
import { type JoinedReading, readJoined } from './joined-reading.ts';
import { nextTargets } from './next-targets.ts';
import { type Counts, countsOf, type Eta, etaOf } from './progress.ts';
import { type RunReading, readRun } from './run-reading.ts';
import { type Situation, situationsOf } from './situations.ts';
import { stopsAhead } from './stops-ahead.ts';
import {
  type DifferingTarget,
  differingTargets,
  readStages,
  type StageReading,
  waveOf,
} from './target-reading.ts';
import { wayBackOfRollout } from './way-back.ts';
import { workOfRollout } from './work-on.ts';

/**
 * What people can know about one plan at one time. It contains data: a cause is a `Reason`, and a time is an RFC 3339
 * text, as in the records. Its size does not grow with the number of targets: what does grow is behind a method, and
 * whoever calls the method reads every target.
 */
export interface PlanReading {
  /** The time of the reading, in milliseconds since the Unix epoch. */
  readonly now: number;
  readonly plan: PlanIdentity;
  /** Undefined before the rollout is recorded. */
  readonly run: RunReading | undefined;
  readonly end: PlanEnd;
  /** Why the plan ended as it did, is about to end, or cannot start; undefined if there is no such reason. */
  readonly cause: Reason | undefined;
  /** True if the recorded rollout has ended. */
  readonly isOver: boolean;
  /** True if a leader starts the plan again by itself, because it was edited after its end and its policy says so. */
  readonly startsAgain: boolean;
  /** True for an invalid plan that continues without a change by a person when its channel answers. */
  readonly awaitsChannel: boolean;
  /** The versions of the plan, each once. If the run has ended, these are the versions that it has signalled. */
  readonly versions: readonly string[];
  readonly counts: Counts;
  /** Undefined if nobody can tell the end, such as for a plan with `stopsAhead`. */
  readonly eta: Eta | undefined;
  readonly controls: ControlsReading;
  readonly waits: readonly Wait[];
  readonly findings: Findings;
  /** Returns whether all targets that are done can go back to their earlier versions; undefined if that is not known. */
  wayBack(): WayBack | undefined;
  /** Returns the stages with every target. They are read once. */
  stages(): readonly StageReading[];
  /** Returns the targets that are done, but run another version. */
  differing(): readonly DifferingTarget[];
  /** Returns the names of the targets that start next, in order. */
  next(): readonly string[];
  /** Returns the progress of the waves of each stage that has waves. */
  waves(): readonly WaveProgress[];
  /** Returns the numbers of the waves with pending targets that need an approval and have none; the first wave is 1. */
  unapproved(): readonly number[];
  /** Returns the codes of the reasons for which an open plan will wait before it ends, as far as they are known now. */
  stopsAhead(): readonly ReasonCode[];
  /** Returns the nodes that joined after the plan began, and that it has not upgraded yet. */
  joined(): readonly JoinedReading[];
  /** Returns whether the leader rolls this run back; undefined if the policy does not ask for it. */
  rollBack(): RollBackVerdict | undefined;
  /** Returns why targets of a failed plan never started; undefined for any other plan. */
  stopped(): EndByBudget | undefined;
  /** Returns whether the plan upgrades its targets or takes them back, also if another product decided to go back. */
  work(): RolloutWork;
  /** Returns the situations in which people can do something. The advice about the first one helps most. */
  situations(): readonly Situation[];
  /** Returns what people decided about the run. */
  decided(): DecidedReading;
}

export interface PlanIdentity {
  readonly source: Source;
  /** The name that the plan gives to its run. */
  readonly id: string;
  /** The run that this plan rolls back, as `<uid of its plan>/<id>`, and the text in which the plan says why. */
  readonly rollsBack: { readonly run: string; readonly reason: string | undefined } | undefined;
  /**
   * `metadata.generation` of the spec that the reading is about. For an ended rollout, this is the generation with
   * which it ended; otherwise it is the present generation.
   */
  readonly generation: number | undefined;
}

/** What people want: the policy of the plan, and its pauses and aborts. */
export interface ControlsReading {
  /** The name of the UpgradePolicy; undefined if none covers the plan. */
  readonly policy: string | undefined;
  /** The time zone of the maintenance windows, if it is set and not UTC. */
  readonly timeZone: string | undefined;
  /** What is paused. */
  readonly paused: 'plan' | 'policy' | undefined;
  /** Why the plan was aborted; undefined if it was not. */
  readonly abort: string | undefined;
  /** True if the plan goes on without workers whose Nodes were deleted. */
  readonly leavesOutGone: boolean;
}

/** What checks, hooks and targets have told about the run so far. */
export interface Findings {
  /** The first targets that failed. There are at most as many as a NodeRollout shows. */
  readonly failures: readonly FailedTarget[];
  readonly checks: readonly CheckResult[];
  /** The hooks that run or have ended, as far as the reader knows. */
  readonly hooks: readonly HookResult[];
  /** The nodes that stay cordoned, because Refit removes only its own cordons; empty for a reader that did not ask. */
  readonly cordoned: readonly Cordoned[];
  /**
   * Returns the names of the targets that have ended, and the names of the runs of hooks for the whole plan that have
   * not succeeded. An earlier failure of one of their hooks still counts.
   */
  settled(): readonly string[];
  /** Returns the names of the health checks because of which targets failed. */
  failedChecks(): readonly string[];
  /** Returns the names of the failed hooks of the whole plan that can run again. Those of an aborted plan cannot. */
  retryableHooks(): readonly string[];
}

export interface FailedTarget extends Pick<Target, 'name' | 'state'> {
  /** Undefined if nobody knows any more why the target failed. */
  readonly cause: Reason | undefined;
}

/** How many waves a stage has, and how many of the first of them have ended. */
export interface WaveProgress {
  readonly planned: number;
  readonly ended: number;
}

/** What a reading needs in addition to the assessment. */
export interface ReadingInput {
  /** The waits to tell. */
  readonly waits: readonly Wait[];
  /** All waits of the assessment; absent if these are the waits to tell. */
  readonly allWaits?: readonly Wait[] | undefined;
  readonly cordoned?: readonly Cordoned[] | undefined;
  /** The rollout as the controller would record it next; absent if it is the present rollout. */
  readonly upcoming?: Rollout | undefined;
  /** The runs in the NodeRollout of the plan, the newest first; absent if nobody asked for them or they are unknown. */
  readonly runs?: readonly NodeRolloutRun[] | undefined;
  /** `metadata.generation` of the plan. */
  readonly generation?: number | undefined;
}

/** Reads the plan of the assessment. */
export function readPlan(assessment: Assessment, input: ReadingInput): PlanReading {
  const { snapshot, policy, now } = assessment;
  const { rollout } = snapshot;
  const { waits, allWaits = waits, upcoming = rollout } = input;
  const end = shownEndOf(snapshot, policy, now);
  const run = readRun(assessment, input.runs);
  const stages = onlyOnce(() => readStages(assessment, upcoming));
  // The reason in the state that the controller would record next is used, too, because the controller may be about
  // to refuse a new plan or to record a failure.
  const cause = end.reason ?? upcoming.reason ?? rollout.problems[0];
  const startsAgain = isRestartDue(snapshot, policy, now);
  const controls = controlsIn(snapshot, policy);
  const work = onlyOnce(() => workOfRollout(snapshot));
  const failedHealth = (): string[] => failedChecks(causesIn(stages()), policy);
  return {
    now,
    plan: identityOf(rollout, input.generation),
    run,
    end,
    cause,
    isOver: isFinal(rollout),
    startsAgain,
    awaitsChannel: rollout.phase === 'invalid' && rollout.problems[0]?.code === 'ChannelUnanswered',
    versions: versionsOf(snapshot),
    counts: countsOf(rollout),
    eta: etaOf(assessment, waits),
    controls,
    waits,
    findings: {
      failures: failuresIn(snapshot),
      checks: snapshot.outside.health ?? [],
      hooks: snapshot.outside.hooks ?? [],
      cordoned: input.cordoned ?? [],
      settled: () => [...settledNames(rollout), ...unsucceededPlanRuns(assessment)],
      failedChecks: failedHealth,
      retryableHooks: () =>
        snapshot.plan.controls.abort === undefined ? failedPlanHooks(snapshot, policy) : [],
    },
    wayBack: onlyOnce(() => wayBackOfRollout(assessment)),
    stages,
    differing: () => differingTargets(assessment),
    next: () => nextTargets(assessment, allWaits, upcoming),
    waves: () => wavesIn(assessment),
    unapproved: () => unapprovedIn(assessment),
    stopsAhead: () => stopsAhead(assessment),
    joined: () => (run === undefined ? [] : readJoined(assessment, run)),
    rollBack: () => rollBackVerdict(snapshot, policy, now),
    stopped: () => endByBudget(snapshot, policy),
    work,
    situations: () =>
      situationsOf({
        phase: end.phase,
        cause,
        abort: controls.abort,
        paused: controls.paused,
        startsAgain,
        isRecordedRollBack: rollout.rollsBack !== undefined,
        isRollBack: work() === 'roll-back',
        targets: stages().flatMap(({ targets }) => targets),
        failedHoldSlots: stages().some((stage) => stage.failedHoldSlots),
        waits,
        failedChecks: failedHealth(),
      }),
    decided: () => readDecided(assessment),
  };
}

function identityOf(rollout: Rollout, present: number | undefined): PlanIdentity {
  const { source, id, rollsBack, rollsBackReason: reason } = rollout;
  return {
    source,
    id,
    rollsBack: rollsBack === undefined ? undefined : { run: rollsBack, reason },
    generation: isFinal(rollout) ? (rollout.generation ?? present) : present,
  };
}

function controlsIn(
  { plan: { controls }, abilities }: Snapshot,
  policy: RolloutPolicy,
): ControlsReading {
  const pausedBy = policy.paused ? 'policy' : undefined;
  return {
    policy: policy.name,
    timeZone: zoneOf([...policy.windows, ...(policy.planWindows ?? [])]),
    paused: controls.paused ? 'plan' : pausedBy,
    abort: controls.abort,
    leavesOutGone: policy.leavesOutGone === true && abilities.canSkip,
  };
}

/**
 * Returns the versions of the plan. A run that has ended has the versions of its signals, because nothing shows which
 * version its other targets would have got before people edited the plan.
 */
function versionsOf(snapshot: Snapshot): string[] {
  const { rollout } = snapshot;
  const signalled = isFinal(rollout) ? signalledVersions(snapshot).map(({ asked }) => asked) : [];
  const versions = signalled.length > 0 ? signalled : rollout.stages.map(({ version }) => version);
  return [...new Set(versions)].filter((version) => version !== '');
}

function failuresIn(snapshot: Snapshot): FailedTarget[] {
  return targetsIn(snapshot.rollout, ...FAILURES)
    .slice(0, MOST.failures)
    .map((target) => ({
      name: target.name,
      state: target.state,
      cause: failureOf(snapshot, target),
    }));
}

function causesIn(stages: readonly StageReading[]): Reason[] {
  return stages.flatMap(({ targets }) => targets.flatMap(({ cause }) => cause ?? []));
}

/** Returns the names of the runs of hooks for the whole plan that have not succeeded, as far as the reader knows. */
function unsucceededPlanRuns({ snapshot, policy }: Assessment): string[] {
  const good = new Set(
    snapshot.outside.hooks?.flatMap(({ id, state }) => (state === 'succeeded' ? [id] : [])),
  );
  const runs = planHookRuns(snapshot, policy, 'beforePlan', 'afterPlan');
  return runs.map(({ id }) => id).filter((id) => !good.has(id));
}

function wavesIn(assessment: Assessment): WaveProgress[] {
  return assessment.snapshot.rollout.stages.flatMap((stage) => {
    const { members = [] } = wavesOf(assessment, stage) ?? {};
    const open = members.findIndex((wave) =>
      wave.some(({ state }) => state === 'pending' || state === 'intended'),
    );
    const ended = open === -1 ? members.length : open;
    return members.length === 0 ? [] : [{ planned: members.length, ended }];
  });
}

function unapprovedIn(assessment: Assessment): number[] {
  const { rollout } = assessment.snapshot;
  if (assessment.policy.waves === undefined || isFinal(rollout)) return [];
  const open = new Set(
    rollout.stages.flatMap((stage) =>
      inState(stage, 'pending').map((target) => waveOf(assessment, stage, target)),
    ),
  );
  return unapprovedWaves(assessment).filter((wave) => open.has(wave));
}
