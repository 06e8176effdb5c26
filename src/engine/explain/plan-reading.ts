/**
 * Reads a plan once for people. The NodeRollout, the notifications, the conditions, and all outputs of `refit` about a
 * plan are made from this reading, so they cannot contradict each other. No decision depends on it.
 */
import { MOST } from '../../api/refit/node-rollout.ts';
import type { CheckResult } from '../../health/checks.ts';
import type { HookResult } from '../../hooks/rules.ts';
import type { WayBack } from '../../versions/way-back.ts';
import type { Assessment } from '../assess/assess.ts';
import { FAILURES } from '../assess/budget.ts';
import { type PlanEnd, planEndOf, versionAsked } from '../assess/ended.ts';
import { failureOf } from '../assess/target-failures.ts';
import { planHookRuns } from '../gates/hook-runs.ts';
import type { Wait } from '../model/decision.ts';
import type { Reason } from '../model/reasons.ts';
import { isFinal, type Rollout, type Source, type Target, targetsIn } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { wavesOf } from '../schedule/waves.ts';
import { settledNames } from '../turn/choose-hooks.ts';
import { type Counts, countsOf, type Eta, etaOf } from './progress.ts';
import { type RunReading, readRun } from './run-reading.ts';
import { wayBackOfRollout } from './way-back.ts';

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
  /** True if the recorded rollout has ended. */
  readonly isOver: boolean;
  /** The versions of the plan, each once. If the plan was edited after its end, these are the versions that it installed. */
  readonly versions: readonly string[];
  readonly counts: Counts;
  readonly eta: Eta | undefined;
  readonly waits: readonly Wait[];
  readonly findings: Findings;
  /** Says whether all targets that are done can go back to their earlier versions; undefined if that is not known. */
  readonly wayBack: WayBack | undefined;
  /** Returns the progress of the waves of each stage that has waves. */
  waves(): readonly WaveProgress[];
}

export interface PlanIdentity {
  readonly source: Source;
  /**
   * `metadata.generation` of the spec that the reading is about. For an ended rollout, this is the generation with
   * which it ended; otherwise it is the present generation.
   */
  readonly generation: number | undefined;
}

/** What checks, hooks and targets have told about the run so far. */
export interface Findings {
  /** The first targets that failed. There are at most as many as a NodeRollout shows. */
  readonly failures: readonly FailedTarget[];
  readonly checks: readonly CheckResult[];
  /** The hooks that run or have ended, as far as the reader knows. */
  readonly hooks: readonly HookResult[];
  /**
   * Returns the names of the targets that have ended, and the names of the runs of hooks for the whole plan that have
   * not succeeded. An earlier failure of one of their hooks still counts.
   */
  settled(): readonly string[];
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
  /** `metadata.generation` of the plan. */
  readonly generation?: number | undefined;
}

/** Reads the plan of the assessment. */
export function readPlan(assessment: Assessment, { waits, generation }: ReadingInput): PlanReading {
  const { snapshot, policy, now } = assessment;
  const { rollout } = snapshot;
  const end = planEndOf(snapshot, now);
  const isOver = isFinal(rollout);
  return {
    now,
    plan: {
      source: rollout.source,
      generation: isOver ? (rollout.generation ?? generation) : generation,
    },
    run: readRun(assessment),
    end,
    isOver,
    versions: versionsOf(snapshot, end),
    counts: countsOf(rollout),
    eta: etaOf(assessment, waits),
    waits,
    findings: {
      failures: failuresIn(snapshot),
      checks: snapshot.outside.health ?? [],
      hooks: snapshot.outside.hooks ?? [],
      settled: () => [...settledNames(rollout), ...unsucceededPlanRuns(assessment)],
    },
    wayBack: wayBackOfRollout(assessment),
    waves: () => wavesIn(rollout, { snapshot, policy }),
  };
}

function versionsOf(snapshot: Snapshot, { phase }: PlanEnd): string[] {
  const { stages } = snapshot.rollout;
  const versions =
    phase === 'edited'
      ? stages.flatMap((stage) =>
          stage.targets.map((target) => versionAsked(snapshot, stage, target)),
        )
      : stages.map(({ version }) => version);
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

/** Returns the names of the runs of hooks for the whole plan that have not succeeded, as far as the reader knows. */
function unsucceededPlanRuns({ snapshot, policy }: Assessment): string[] {
  const good = new Set(
    snapshot.outside.hooks?.flatMap(({ id, state }) => (state === 'succeeded' ? [id] : [])),
  );
  const runs = planHookRuns(snapshot, policy, 'beforePlan', 'afterPlan');
  return runs.map(({ id }) => id).filter((id) => !good.has(id));
}

function wavesIn(
  { stages }: Rollout,
  context: Pick<Assessment, 'snapshot' | 'policy'>,
): WaveProgress[] {
  return stages.flatMap((stage) => {
    const { members = [] } = wavesOf(context, stage) ?? {};
    const open = members.findIndex((wave) =>
      wave.some(({ state }) => state === 'pending' || state === 'intended'),
    );
    const ended = open === -1 ? members.length : open;
    return members.length === 0 ? [] : [{ planned: members.length, ended }];
  });
}
