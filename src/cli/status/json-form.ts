/**
 * Makes the JSON form of plans (docs/reference/cli.md) from their readings. All texts about plans are made from this form,
 * because its strings are safe to print.
 */

import type { PlanReading } from '../../engine/explain/plan-reading.ts';
import { rollBackSentence } from '../../engine/explain/roll-back.ts';
import type { Situation } from '../../engine/explain/situations.ts';
import type {
  DrainLeft,
  RollBackTimes,
  StageReading,
  TargetReading,
} from '../../engine/explain/target-reading.ts';
import type { Cordoned, Wait } from '../../engine/model/decision.ts';
import { editedClause } from '../../engine/model/edited-clause.ts';
import type { TargetReport } from '../../engine/model/facts.ts';
import { type Reason, type ReasonCode, remedyOf } from '../../engine/model/reasons.ts';
import type { Rollout } from '../../engine/model/rollout.ts';
import type { PlanPhase, TargetPhase } from '../../engine/model/shown-phases.ts';
import { checksShown, type ShownCheck } from '../../engine/report/shown-checks.ts';
import { hooksShown, type ShownHook } from '../../engine/report/shown-hooks.ts';
import type { ShownSilence } from '../../engine/report/shown-silences.ts';
import type { ShownSilencing } from '../../engine/report/shown-silencing.ts';
import type { NodeAgent } from '../../signal/agent-presence.ts';
import type { Hold } from '../../signal/holds.ts';
import { listed } from '../../util/phrases.ts';
import type { WayBack } from '../../versions/way-back.ts';
import type { AdviceJson } from '../contract/guidance.ts';
import type { LeaseName, PlanTexts } from '../contract/session-dialect.ts';
import { decidedSentences } from './decided.ts';
import { harmless } from './harmless.ts';
import type { LeaderView } from './load.ts';

/** Why a plan is refused because of one target. */
export type RefusalJson = Pick<Reason, 'code' | 'message'>;

export interface TargetJson
  extends Pick<TargetReport, 'from' | 'spent' | 'rolledBack' | 'etcdSnapshot'> {
  readonly name: string;
  /** The Machine of Cluster API that the update is for, as `<namespace>/<name>`; absent for all other plans. */
  readonly machine?: string | undefined;
  readonly phase: TargetPhase;
  readonly step?: string | undefined;
  /** RFC 3339 time of the last change. */
  readonly since: string;
  /** RFC 3339 time at which the target was signalled, if its object shows it. */
  readonly began?: string | undefined;
  /** Why the target failed; absent if that is not known. */
  readonly failure?: string | undefined;
  /** The code of the reason why the target failed, such as `HealthCheckFailing`. */
  readonly failureReason?: ReasonCode | undefined;
  /** For a plan that is or was refused before it started: why this target cannot start. */
  readonly refusal?: RefusalJson | undefined;
  /** Why the agent has not begun yet, in its words. */
  readonly delay?: string | undefined;
  /** Why the work makes no progress, such as an image that cannot be pulled. */
  readonly stalled?: string | undefined;
  /**
   * RFC 3339 times at which the agent rolls back: `unanswered` if the new version has not answered
   * by then, and `notReady` if the node is not Ready by then.
   */
  readonly rollsBack?: RollBackTimes | undefined;
  /** Who cordons, drains and uncordons the node; absent outside of these steps. */
  readonly drains?: 'leader' | 'node' | undefined;
  /** What is left of a drain by the leader; absent outside of such a drain. */
  readonly drain?: DrainLeft | undefined;
  /** The agent that acts on the target; absent if its dialect has no agents. */
  readonly agent?: NodeAgent | undefined;
  readonly fetchesAhead?: boolean | undefined;
  /** True if the target already runs the version of its stage, or a later version of the plan. */
  readonly isThere?: boolean | undefined;
  /** True if the target is done and ran its version already before its last attempt, which upgraded nothing. */
  readonly hadVersion?: boolean | undefined;
  /** The version that the target runs, if it is not the version that is recorded as installed. */
  readonly runs?: string | undefined;
  /** The version that the target was signalled with, if the plan asks for another version now. */
  readonly asked?: string | undefined;
  /**
   * The version that a target runs whose upgrade has not begun, as its object says. The version of a kubelet may lack
   * the build.
   */
  readonly installed?: string | undefined;
  /** True if the object of the target does not exist any more. */
  readonly gone?: boolean | undefined;
  /** The hold that keeps a pending or skipped target from starting. */
  readonly held?: HoldJson | undefined;
  /** One sentence: which pin of the policy keeps a pending or skipped target from starting. */
  readonly pinned?: string | undefined;
  /**
   * The number of the wave of the target; the first wave is 1. Absent if the policy has no waves, or if the target
   * belongs to the control plane.
   */
  readonly wave?: number | undefined;
  /** The zone of the target's Node; absent if the Node has no label for the zone. */
  readonly zone?: string | undefined;
  /** Says whether a target that is done can go back to its earlier version. */
  readonly wayBack?: WayBack | undefined;
}

/** Who holds a target and why. `since` and `until` are RFC 3339 times; without `until`, only `refit unhold` ends the hold. */
export type HoldJson = Pick<Hold, 'by' | 'reason' | 'since' | 'until'>;

export interface StageJson
  extends Pick<StageReading, 'command' | 'role' | 'version' | 'maxInFlight'> {
  /** The other controller that chooses which target comes next; absent if there is none. */
  readonly chosenBy?: string | undefined;
  readonly active: boolean;
  /** The selector of the targets, if no Node matches it. */
  readonly selection?: string | undefined;
  readonly targets: readonly TargetJson[];
}

export interface PlanJson
  extends Pick<Rollout['source'], 'kind' | 'name' | 'uid' | 'created'>,
    Pick<Rollout, 'id'> {
  readonly dialect: string;
  readonly phase: PlanPhase;
  readonly namespace?: string | undefined;
  /** Name of the Cluster, if the plan is an update of a Machine. */
  readonly cluster?: string | undefined;
  /** RFC 3339 time at which this run began; absent if nothing is recorded yet. A plan may have had earlier runs with other versions. */
  readonly started?: string | undefined;
  /** RFC 3339 time at which the run ended, as the NodeRollout records it. Absent if it has not ended, or if nobody knows when. */
  readonly ended?: string | undefined;
  /** True for an invalid plan that continues without a change by the user when its channel answers. */
  readonly goesOn?: boolean | undefined;
  /** One sentence: why the plan failed, is about to fail, or cannot start. */
  readonly reason?: string | undefined;
  /** How the plan was edited after its end: the part of `reason` without advice. */
  readonly edit?: string | undefined;
  /** True if a leader starts the plan again by itself, because it was edited after its end and its policy says so. */
  readonly startsAgain?: boolean | undefined;
  /** The code of the reason, such as `DeadlineExceeded`. */
  readonly reasonCode?: ReasonCode | undefined;
  /** One sentence for a plan that is or will be refused: what the user can do about the reason. */
  readonly remedy?: string | undefined;
  /** One sentence for a failed plan with targets that never started: which limit was exceeded, and by which failures. */
  readonly stopped?: string | undefined;
  /** One sentence: whether the leader rolls the plan back by itself, or which run the plan rolls back. */
  readonly rollBack?: string | undefined;
  /** The run that this plan rolls back, as `<uid of its plan>/<id>`; absent for every other plan. */
  readonly rollsBackRun?: string | undefined;
  /** True if the plan takes its targets back to earlier versions, also if no run is recorded from which it goes back. */
  readonly goesBack?: boolean | undefined;
  /** The name of the UpdateConfig that the plan names as its creator. The UpdateConfig may have been deleted since. */
  readonly updateConfig?: string | undefined;
  readonly stages: readonly StageJson[];
  readonly waits: readonly Wait[];
  /** What people can do about the plan, the most helpful first. Only the JSON form has it. */
  readonly advice?: readonly AdviceJson[] | undefined;
  /** Names of the targets that start next, in order. */
  readonly next: readonly string[];
  /**
   * The codes of the reasons for which an open plan will wait before it ends, as far as they are known now. While there
   * are any, nobody can tell the time that is left.
   */
  readonly stopsAhead?: readonly ReasonCode[] | undefined;
  /** The numbers of the waves with pending targets that need an approval and have none; the first wave is 1. */
  readonly unapproved?: readonly number[] | undefined;
  readonly policy?: string | undefined;
  /** Time zone of the maintenance windows, if it is set and not UTC. */
  readonly timeZone?: string | undefined;
  readonly paused?: 'plan' | 'policy' | undefined;
  /** True for an open plan that no leader carries out now. */
  readonly leaderless?: boolean | undefined;
  readonly abort?: string | undefined;
  /** True if the plan goes on without workers whose Nodes were deleted. */
  readonly leavesOutGone?: boolean | undefined;
  /** The nodes that stay cordoned, because Refit removes only its own cordons. */
  readonly cordoned?: readonly Cordoned[] | undefined;
  /** What people decided about the run, one sentence each. */
  readonly decided?: readonly string[] | undefined;
  /** Problems that do not stop the plan, one sentence each. */
  readonly warnings?: readonly string[] | undefined;
  /** The nodes that joined after the plan began, and that it has not upgraded yet. */
  readonly joined?: readonly JoinedJson[] | undefined;
  /** The results of the health checks of the policy, as the leader last published them. `since` is an RFC 3339 time. */
  readonly checks?: readonly CheckJson[] | undefined;
  /** The names of the health checks because of which targets failed. A plan that goes back waits for these checks, too. */
  readonly failedChecks?: readonly string[] | undefined;
  /** The hooks of the policy that run or have failed, as the leader last published them. `since` is an RFC 3339 time. */
  readonly hooks?: readonly HookJson[] | undefined;
  /** The names of the failed hooks of the whole plan that `refit retry` runs again. */
  readonly retryableHooks?: readonly string[] | undefined;
  /** Says whether alerts about the nodes in progress are silenced, as the leader last published it. */
  readonly silencing?: SilencingJson | undefined;
  /** Checks that could not run, one sentence each. */
  readonly unseen?: readonly string[] | undefined;
  /** Says whether all targets that are done can go back to their earlier versions. */
  readonly wayBack?: WayBack | undefined;
}

/** The JSON form of a plan, with the situations in which people can do something about it. */
export interface PlanWithSituations extends PlanJson {
  readonly situations: readonly Situation[];
}

/** A plan in its JSON form, with the texts of its dialect. */
export interface ShownPlan extends PlanWithSituations {
  readonly texts: PlanTexts;
}

/** A node that joined after the plan began. `message` says whether it is included, and what to do if it is not. */
export interface JoinedJson {
  readonly name: string;
  readonly included: boolean;
  readonly message: string;
}

export type CheckJson = Pick<ShownCheck, 'name' | 'state' | 'message' | 'since'>;

/** A silence for alerts about one node. `target` is the name of the target on that node. */
export interface SilenceJson extends ShownSilence {
  readonly target: string;
}

export interface SilencingJson extends Omit<ShownSilencing, 'silences'> {
  readonly silences?: readonly SilenceJson[] | undefined;
}

export type HookJson = Omit<ShownHook, 'id'>;

export interface ShownStatus {
  readonly leader: LeaderView;
  /** The Lease of the leader; absent if it is not known. The JSON form does not have it. */
  readonly lease?: LeaseName | undefined;
  /** Names of nodes that are still cordoned for a deleted plan. */
  readonly orphaned?: readonly string[];
  /** RFC 3339 time since when the API server does not answer. All other fields are from that time. */
  readonly silentSince?: string;
  readonly plans: readonly ShownPlan[];
}

/** The JSON form of a status. */
export interface StatusJson extends Omit<ShownStatus, 'plans' | 'lease'> {
  readonly plans: readonly PlanJson[];
}

/** What the JSON form has in addition to the reading of the plan. */
export interface BesideReading
  extends Pick<PlanJson, 'dialect' | 'namespace' | 'cluster' | 'updateConfig'> {
  readonly silencing?: ShownSilencing | undefined;
  readonly warnings: readonly string[];
  readonly unseen: readonly string[];
}

/**
 * The phases of plans that have not started. If a plan in such a phase has a reason, it does not start until somebody changes something.
 */
const REFUSED: ReadonlySet<PlanPhase> = new Set(['new', 'invalid', 'incomplete']);
/** The most names in a sentence. */
const MOST_NAMES = 8;

export function planJson(reading: PlanReading, beside: BesideReading): PlanWithSituations {
  const { plan, run, end, cause, isOver, controls, findings } = reading;
  const { kind, name, uid, created } = plan.source;
  return harmless({
    dialect: beside.dialect,
    kind,
    namespace: beside.namespace,
    cluster: beside.cluster,
    name,
    uid,
    id: plan.id,
    created,
    started: run?.started(),
    ended: run?.ended(),
    phase: end.phase,
    goesOn: reading.awaitsChannel || undefined,
    reason: cause?.message,
    edit: end.edit === undefined ? undefined : editedClause(end.edit),
    startsAgain: reading.startsAgain || undefined,
    reasonCode: cause?.code,
    remedy: cause !== undefined && REFUSED.has(end.phase) ? remedyOf(cause.code) : undefined,
    rollBack: rollBackSentence(reading),
    rollsBackRun: plan.rollsBack?.run,
    goesBack: reading.work() === 'roll-back' || undefined,
    updateConfig: beside.updateConfig,
    // `stopped` is undefined if the plan was edited after its end, because the output explains the edit instead.
    stopped: end.phase === 'failed' ? stoppedSentence(reading.stopped()) : undefined,
    situations: reading.situations(),
    stages: reading.stages().map(stageJson),
    waits: reading.waits,
    next: reading.next(),
    stopsAhead: unlessEmpty(reading.stopsAhead()),
    unapproved: unlessEmpty(reading.unapproved()),
    policy: controls.policy,
    timeZone: controls.timeZone,
    paused: controls.paused,
    abort: controls.abort,
    leavesOutGone: controls.leavesOutGone || undefined,
    cordoned: unlessEmpty(findings.cordoned),
    decided: isOver ? undefined : unlessEmpty(decidedSentences(reading.decided())),
    // An ended plan has no warnings, because warnings are about its future, such as another plan for the same nodes.
    warnings: isOver ? undefined : unlessEmpty(beside.warnings),
    joined: unlessEmpty(
      reading.joined().map((node) => ({
        name: node.name,
        included: node.isIncluded,
        message: node.reason.message,
      })),
    ),
    checks: checksShown(findings.checks)?.map(({ at: _at, nodes: _nodes, ...check }) => check),
    failedChecks: unlessEmpty(findings.failedChecks()),
    hooks: hooksShown(findings.hooks)?.map(({ id: _id, ...hook }) => hook),
    retryableHooks: unlessEmpty(findings.retryableHooks()),
    silencing: silencingJson(beside.silencing, reading),
    unseen: unlessEmpty(beside.unseen),
    wayBack: reading.wayBack(),
  });
}

function unlessEmpty<T>(list: readonly T[]): readonly T[] | undefined {
  return list.length === 0 ? undefined : list;
}

/** Returns which limit a failed rollout has used up, and which targets never started because of it. */
function stoppedSentence(stopped: ReturnType<PlanReading['stopped']>): string | undefined {
  if (stopped === undefined) return undefined;
  return `${stopped.limit}, so ${listed(stopped.unstarted, MOST_NAMES)} never started`;
}

/** Returns what is known about the silences. Each silence has the name of the target for whose node it was made. */
function silencingJson(
  silencing: ShownSilencing | undefined,
  reading: PlanReading,
): SilencingJson | undefined {
  if (silencing === undefined) return undefined;
  const { silences, ...state } = silencing;
  if (silences === undefined) return state;
  const inProgress = reading
    .stages()
    .flatMap(({ targets }) => targets.filter(({ recorded }) => recorded === 'intended'));
  const names = new Map(inProgress.map(({ node, name }) => [node, name]));
  const shown = silences.map((each) => ({ ...each, target: names.get(each.node) ?? each.node }));
  return { ...state, silences: shown };
}

function stageJson(stage: StageReading): StageJson {
  const { command, role, version, maxInFlight, chosenBy, isActive, selection, targets } = stage;
  return {
    command,
    role,
    version,
    maxInFlight,
    chosenBy,
    active: isActive,
    selection,
    targets: targets.map(targetJson),
  };
}

function targetJson(target: TargetReading): TargetJson {
  const { name, subject: machine, phase, since, cause, asked, ran, from, work } = target;
  // The work on the target may not have begun although it has its signal.
  const isAsBefore = phase === 'pending' || work?.kind === 'sent';
  const always = {
    failure: cause?.message,
    failureReason: cause?.code,
    refusal: target.refusal,
    agent: target.agent,
    fetchesAhead: target.fetchesAhead || undefined,
    isThere: target.isThere || undefined,
    hadVersion: target.hadVersion || undefined,
    runs: target.differs ? (ran ?? asked ?? target.wants) : undefined,
    asked: asked === target.wants ? undefined : asked,
    installed: isAsBefore ? ran : undefined,
    gone: !target.exists || undefined,
    held: target.held,
    pinned: target.pinned?.message,
    wayBack: target.wayBack,
    wave: target.wave,
    zone: target.zone,
  };
  if (work === undefined) return { name, machine, phase, since, ...always, from };
  const { step, began, spent, delay, stalled, rolledBack, etcdSnapshot, rollsBack, drains, drain } =
    work;
  return {
    name,
    machine,
    phase,
    ...always,
    step,
    since,
    began,
    from,
    spent,
    delay,
    stalled,
    rolledBack,
    etcdSnapshot,
    rollsBack,
    drains,
    drain,
  };
}

interface Plans<Plan> {
  readonly plans: readonly Plan[];
}

/** Returns the JSON form of a status or of a preview. It leaves out the Lease and the texts of the dialects. */
export function jsonOf<Plan extends { readonly texts: PlanTexts }, Shown extends Plans<Plan>>(
  shown: Shown & Plans<Plan>,
): Omit<Shown, 'plans' | 'lease'> & Plans<Omit<Plan, 'texts'>> {
  const plans = shown.plans.map(({ texts: _texts, ...plan }) => plan);
  return { ...shown, lease: undefined, plans };
}
