/** Makes the view of a plan. All outputs about plans are made from views. */

import { stoppedTargets } from '../../engine/assess/advance.ts';
import { type Assessment, phaseOf } from '../../engine/assess/assess.ts';
import { describeEndByBudget } from '../../engine/assess/budget.ts';
import { editedClause, isBehind, lastMoment, planEndOf } from '../../engine/assess/ended.ts';
import { includedReason, joinedNodes } from '../../engine/assess/joined-targets.ts';
import { failureOf } from '../../engine/assess/target-failures.ts';
import type { FullExplanation } from '../../engine/explain/explain.ts';
import { rollBackSentence } from '../../engine/explain/roll-back.ts';
import { wayBackOf, wayBackOfRollout } from '../../engine/explain/way-back.ts';
import { failedPlanHooks } from '../../engine/gates/hook-runs.ts';
import { factsOf, labelsOf, nodeNameOf } from '../../engine/gates/types.ts';
import { answerOf } from '../../engine/model/asked.ts';
import type { Cordoned, Wait } from '../../engine/model/decision.ts';
import type { TargetFacts, TargetReport } from '../../engine/model/facts.ts';
import { type Reason, type ReasonCode, remedyOf } from '../../engine/model/reasons.ts';
import {
  activeStage,
  inState,
  isFinal,
  isUpgradedByLaterStage,
  type Rollout,
  type Stage,
  type Target,
  targetsIn,
} from '../../engine/model/rollout.ts';
import type { PlanPhase, TargetPhase } from '../../engine/model/shown-phases.ts';
import type { Snapshot } from '../../engine/model/snapshot.ts';
import { AGENT_DEFAULTS, type RolloutPolicy } from '../../engine/policy/rollout-policy.ts';
import { failedChecks } from '../../engine/reasons/health-check.ts';
import { checksShown, type ShownCheck } from '../../engine/report/shown-checks.ts';
import { hooksShown, type ShownHook } from '../../engine/report/shown-hooks.ts';
import type { ShownSilence } from '../../engine/report/shown-silences.ts';
import type { ShownSilencing } from '../../engine/report/shown-silencing.ts';
import { limitOf } from '../../engine/schedule/slots.ts';
import { unapprovedWaves } from '../../engine/schedule/wave-approval.ts';
import { wavesOf } from '../../engine/schedule/waves.ts';
import type { NodeAgent } from '../../signal/agent-presence.ts';
import { type Hold, isHeld } from '../../signal/holds.ts';
import { rfc3339 } from '../../util/clock.ts';
import { zoneOf } from '../../util/maintenance-windows.ts';
import { ownMember } from '../../util/own-member.ts';
import type { WayBack } from '../../versions/way-back.ts';
import type { PlanTexts } from '../contract/session-dialect.ts';
import { harmless } from './harmless.ts';
import type { LeaderView } from './load.ts';
import { nextTargets } from './next-targets.ts';
import { endOf, type Recorded, startOf } from './run-times.ts';
import { shownWaits } from './shown-waits.ts';

/** Why a plan is refused because of one target. */
export type RefusalView = Pick<Reason, 'code' | 'message'>;

export interface TargetView
  extends Pick<TargetReport, 'from' | 'spent' | 'rolledBack' | 'etcdSnapshot'> {
  readonly name: string;
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
  readonly refusal?: RefusalView | undefined;
  /** Why the agent has not begun yet, in its words. */
  readonly delay?: string | undefined;
  /** Why the work makes no progress, such as an image that cannot be pulled. */
  readonly stalled?: string | undefined;
  /**
   * RFC 3339 times at which the agent rolls back: `unanswered` if the new version has not answered
   * by then, and `notReady` if the node is not Ready by then.
   */
  readonly rollsBack?: { readonly unanswered: string; readonly notReady: string } | undefined;
  /** Who cordons, drains and uncordons the node; absent outside of these steps. */
  readonly drains?: 'leader' | 'node' | undefined;
  /** The agent that acts on the target; absent if its dialect has no agents. */
  readonly agent?: NodeAgent | undefined;
  readonly fetchesAhead?: boolean | undefined;
  /** True if the target already runs the version of its stage, or a later version of the plan. */
  readonly isThere?: boolean | undefined;
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
  readonly held?: HoldView | undefined;
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
export type HoldView = Pick<Hold, 'by' | 'reason' | 'since' | 'until'>;

export interface StageView extends Pick<Stage, 'command' | 'role' | 'version' | 'maxInFlight'> {
  readonly active: boolean;
  /** The selector of the targets, if no Node matches it. */
  readonly selection?: string | undefined;
  readonly targets: readonly TargetView[];
}

export interface PlanView
  extends Pick<Rollout['source'], 'kind' | 'name' | 'uid' | 'created'>,
    Pick<Rollout, 'id'> {
  readonly dialect: string;
  /** The texts of the dialect. They are no part of the JSON form. */
  readonly texts: PlanTexts;
  readonly phase: PlanPhase;
  readonly namespace?: string | undefined;
  /** Name of the Cluster, if the plan is an update of a Machine. */
  readonly cluster?: string | undefined;
  /** RFC 3339 time at which this run began; absent if nothing is recorded yet. A plan may have had earlier runs with other versions. */
  readonly started?: string | undefined;
  /**
   * RFC 3339 time at which the last target ended. Absent if the plan has not ended, or if something other than a target
   * ended it.
   */
  readonly ended?: string | undefined;
  /** True for an invalid plan that continues without a change by the user when its channel answers. */
  readonly goesOn?: boolean | undefined;
  /** One sentence: why the plan failed, is about to fail, or cannot start. */
  readonly reason?: string | undefined;
  /** How the plan was edited after its end: the part of `reason` without advice. */
  readonly edit?: string | undefined;
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
  /** The name of the UpdateConfig that the plan names as its creator. The UpdateConfig may have been deleted since. */
  readonly updateConfig?: string | undefined;
  readonly stages: readonly StageView[];
  readonly waits: readonly Wait[];
  /** Names of the targets that start next, in order. */
  readonly next: readonly string[];
  /** The numbers of the waves with pending targets that need an approval and have none; the first wave is 1. */
  readonly unapproved?: readonly number[] | undefined;
  readonly policy?: string | undefined;
  /** Time zone of the maintenance windows, if it is set and not UTC. */
  readonly timeZone?: string | undefined;
  readonly paused?: 'plan' | 'policy' | undefined;
  /** True for an open plan that no leader carries out now. */
  readonly leaderless?: boolean | undefined;
  readonly abort?: string | undefined;
  /** The nodes that stay cordoned, because Refit removes only its own cordons. */
  readonly cordoned?: readonly Cordoned[] | undefined;
  /** What people decided about the run, one sentence each. */
  readonly decided?: readonly string[] | undefined;
  /** Problems that do not stop the plan, one sentence each. */
  readonly warnings?: readonly string[] | undefined;
  /** The nodes that joined after the plan began, and that it has not upgraded yet. */
  readonly joined?: readonly JoinedView[] | undefined;
  /** The results of the health checks of the policy, as the leader last published them. `since` is an RFC 3339 time. */
  readonly checks?: readonly CheckView[] | undefined;
  /** The names of the health checks because of which targets failed. A plan that goes back waits for these checks, too. */
  readonly failedChecks?: readonly string[] | undefined;
  /** The hooks of the policy that run or have failed, as the leader last published them. `since` is an RFC 3339 time. */
  readonly hooks?: readonly HookView[] | undefined;
  /** The names of the failed hooks of the whole plan that `refit retry` runs again. */
  readonly retryableHooks?: readonly string[] | undefined;
  /** Says whether alerts about the nodes in progress are silenced, as the leader last published it. */
  readonly silencing?: SilencingView | undefined;
  /** Checks that could not run, one sentence each. */
  readonly unseen?: readonly string[] | undefined;
  /** Says whether all targets that are done can go back to their earlier versions. */
  readonly wayBack?: WayBack | undefined;
}

/** A node that joined after the plan began. `message` says whether it is included, and what to do if it is not. */
export interface JoinedView {
  readonly name: string;
  readonly included: boolean;
  readonly message: string;
}

export type CheckView = Pick<ShownCheck, 'name' | 'state' | 'message' | 'since'>;

/** A silence for alerts about one node. `target` is the name of the target on that node. */
export interface SilenceView extends ShownSilence {
  readonly target: string;
}

export interface SilencingView extends Omit<ShownSilencing, 'silences'> {
  readonly silences?: readonly SilenceView[] | undefined;
}

export type HookView = Omit<ShownHook, 'id'>;

export interface StatusView {
  readonly leader: LeaderView;
  /** Names of nodes that are still cordoned for a deleted plan. */
  readonly orphaned?: readonly string[];
  /** RFC 3339 time since when the API server does not answer. All other fields are from that time. */
  readonly silentSince?: string;
  readonly plans: readonly PlanView[];
}

/** The values that a view is made from: the assessment of the current state, and the state that the controller would record next. */
export interface ViewInput
  extends Assessment,
    Pick<Recorded, 'runs'>,
    Pick<PlanView, 'namespace' | 'cluster' | 'updateConfig'> {
  readonly silencing?: ShownSilencing | undefined;
  readonly explanation: Pick<FullExplanation, 'waits' | 'cordoned'>;
  readonly upcoming: Rollout;
  readonly decided: readonly string[];
  readonly warnings: readonly string[];
  readonly unseen: readonly string[];
}

/** The label of a Node that names its zone (https://kubernetes.io/docs/reference/labels-annotations-taints/). */
const ZONE_LABEL = 'topology.kubernetes.io/zone';

/**
 * The phases of plans that have not started. If a plan in such a phase has a reason, it does not start until somebody changes something.
 */
const REFUSED: ReadonlySet<PlanPhase> = new Set(['new', 'invalid', 'incomplete']);

export function viewOf(dialect: string, texts: PlanTexts, look: ViewInput): PlanView {
  const { snapshot, policy, decided, warnings, unseen } = look;
  const { cordoned } = look.explanation;
  const { rollout } = snapshot;
  const { controls } = snapshot.plan;
  const { kind, name, uid, created } = rollout.source;
  const end = planEndOf(snapshot, look.now);
  // The reason in the state that the controller would record next is used, too, because the controller may be about to
  // refuse a new plan or to record a failure.
  const reason = end.reason ?? look.upcoming.reason ?? rollout.problems[0];
  const refusals = refusalsIn(look);
  const stages = rollout.stages.map((stage) => stageView(stage, look, refusals));
  const shown: Omit<PlanView, 'texts'> = harmless({
    dialect,
    kind,
    namespace: look.namespace,
    cluster: look.cluster,
    name,
    uid,
    id: rollout.id,
    created,
    started: startOf(look),
    ended: endOf(look),
    phase: end.phase,
    goesOn:
      (rollout.phase === 'invalid' && rollout.problems[0]?.code === 'ChannelUnanswered') ||
      undefined,
    reason: reason?.message,
    edit: end.edit === undefined ? undefined : editedClause(end.edit),
    reasonCode: reason?.code,
    remedy: reason !== undefined && REFUSED.has(end.phase) ? remedyOf(reason.code) : undefined,
    rollBack: rollBackSentence(look),
    rollsBackRun: rollout.rollsBack,
    updateConfig: look.updateConfig,
    // `stopped` is undefined if the plan was edited after its end, because the output explains the edit instead.
    stopped: end.phase === 'failed' ? describeEndByBudget(snapshot, policy) : undefined,
    stages,
    waits: shownWaits(look, look.explanation.waits),
    next: nextTargets(look),
    unapproved: unapprovedIn(look),
    policy: policy.name,
    timeZone: zoneOf([...policy.windows, ...(policy.planWindows ?? [])]),
    ...(controls.paused || policy.paused ? { paused: controls.paused ? 'plan' : 'policy' } : {}),
    abort: controls.abort,
    cordoned: cordoned.length === 0 ? undefined : cordoned,
    decided: decided.length === 0 || isFinal(rollout) ? undefined : decided,
    // An ended plan has no warnings, because warnings are about its future, such as another plan for the same nodes.
    warnings: warnings.length === 0 || isFinal(rollout) ? undefined : warnings,
    joined: joinedViews(look),
    checks: checksShown(snapshot.outside.health)?.map(
      ({ at: _at, nodes: _nodes, ...check }) => check,
    ),
    failedChecks: failedChecksOf(look, stages),
    hooks: hooksShown(snapshot.outside.hooks)?.map(({ id: _id, ...hook }) => hook),
    retryableHooks: retryableHooksOf(look),
    silencing: silencingView(look),
    unseen: unseen.length === 0 ? undefined : unseen,
    wayBack: wayBackOfRollout(look),
  });
  return { ...shown, texts };
}

/** Returns the waves with pending targets that lack their approval; undefined if there are none. */
function unapprovedIn(look: ViewInput): number[] | undefined {
  const { rollout } = look.snapshot;
  if (look.policy.waves === undefined || isFinal(rollout)) return undefined;
  const open = new Set(
    rollout.stages.flatMap((stage) =>
      inState(stage, 'pending').map((target) => waveOf(look, stage, target)),
    ),
  );
  const lacking = unapprovedWaves(look).filter((wave) => open.has(wave));
  return lacking.length === 0 ? undefined : lacking;
}

/**
 * Returns the failed hooks of the whole plan that can run again; undefined if there are none. The hooks of an aborted
 * plan cannot run again.
 */
function retryableHooksOf({ snapshot, policy }: ViewInput): string[] | undefined {
  const failed =
    snapshot.plan.controls.abort === undefined ? failedPlanHooks(snapshot, policy) : [];
  return failed.length === 0 ? undefined : failed;
}

/** Returns the checks of the policy because of which targets failed; undefined if there are none. */
function failedChecksOf({ policy }: ViewInput, stages: readonly StageView[]): string[] | undefined {
  const messages = stages.flatMap(({ targets }) => targets.flatMap(({ failure }) => failure ?? []));
  const found = failedChecks(messages, policy);
  return found.length === 0 ? undefined : found;
}

/** Returns what is known about the silences. Each silence has the name of the target for whose node it was made. */
function silencingView({ silencing, snapshot }: ViewInput): SilencingView | undefined {
  if (silencing === undefined) return undefined;
  const { silences, ...state } = silencing;
  if (silences === undefined) return state;
  const targets = new Map(
    targetsIn(snapshot.rollout, 'intended').map((target) => [
      nodeNameOf(target, factsOf(snapshot, target)),
      target.name,
    ]),
  );
  const shown = silences.map((each) => ({ ...each, target: targets.get(each.node) ?? each.node }));
  return { ...state, silences: shown };
}

/**
 * Returns the nodes that joined after the plan began; undefined if there are none, or if such nodes become targets by themselves in this
 * dialect.
 */
function joinedViews(look: ViewInput): readonly JoinedView[] | undefined {
  const { snapshot } = look;
  const { rollout } = snapshot;
  const { joined } = snapshot.plan;
  const start = Date.parse(startOf(look) ?? '');
  if (joined === undefined || rollout.phase !== 'running') return undefined;
  const takenUp = [...targetsIn(rollout, 'pending'), ...targetsIn(rollout, 'intended')]
    .filter((target) => Date.parse(factsOf(snapshot, target).created ?? '') > start)
    .map(({ name }) => ({ name, included: true, message: includedReason(name).message }));
  const others = joinedNodes(look).map(({ name, isIncluded: included, reason: { message } }) => ({
    name,
    included,
    message,
  }));
  const all = new Map([...takenUp, ...others].map((each) => [each.name, each]));
  return all.size === 0 ? undefined : [...all.values()];
}

type Refusals = ReadonlyMap<Target, RefusalView>;

/** Returns why targets cannot start, if the plan is or was refused because of its targets. Otherwise returns nothing. */
function refusalsIn(look: ViewInput): Refusals {
  if (look.upcoming.phase !== 'incomplete') return new Map();
  return new Map(stoppedTargets(look).map(({ target, verdict }) => [target, verdict.reason]));
}

function stageView(stage: Stage, look: ViewInput, refusals: Refusals): StageView {
  const { rollout } = look.snapshot;
  return {
    command: stage.command,
    role: stage.role,
    version: stage.version,
    maxInFlight: limitOf(stage),
    active: !isFinal(rollout) && stage === activeStage(rollout),
    selection: matchless(stage, rollout),
    targets: stage.targets.map((target) => targetView(stage, target, look, refusals)),
  };
}

/**
 * Returns the selector of a stage if no Node matched it, because the selector may be wrong. Returns undefined for a
 * refused plan, which has no targets, and if the record of the plan was not read, because the targets are unknown then.
 */
function matchless({ targets, selection }: Stage, { phase, unread }: Rollout): string | undefined {
  const isKnown = phase !== 'invalid' && unread === undefined;
  return isKnown && targets.length === 0 ? selection : undefined;
}

function targetView(stage: Stage, target: Target, look: ViewInput, refusals: Refusals): TargetView {
  const { snapshot, policy } = look;
  const phase = phaseOf(look, stage, target);
  const facts = factsOf(snapshot, target);
  const { exists, observation, drainDelegation, agent, node } = facts;
  const isThere = facts.isThere === true || isUpgradedByLaterStage(snapshot.rollout, stage, target);
  const isTold = isThere && (phase === 'pending' || phase === 'failed');
  const fetchesAhead = (phase === 'pending' && facts.prefetch === 'asked') || undefined;
  const failure = phase === 'failed' ? failureOf(snapshot, target) : undefined;
  const always = {
    failure: failure?.message,
    failureReason: failure?.code,
    refusal: refusals.get(target),
    agent,
    fetchesAhead,
    isThere: isTold || undefined,
    runs: otherVersion(snapshot, stage, target),
    asked: facts.asked === stage.version ? undefined : facts.asked,
    installed: phase === 'pending' || observation.kind === 'sent' ? facts.version : undefined,
    gone: !exists || undefined,
    held: phase === 'pending' || phase === 'skipped' ? holdNow(facts, look.now) : undefined,
    wayBack: wayBackOf(look, stage, target),
    wave: waveOf(look, stage, target),
    zone: ownMember(labelsOf(snapshot, target), ZONE_LABEL) || undefined,
  };
  if (observation.kind === 'none') {
    // An attempt that is not recorded yet begins at the earliest now.
    const since = target.lacksAttempt ? rfc3339(look.now) : target.since;
    return { name: target.name, phase, since, ...always, from: facts.earlierVersion };
  }
  const { from, spent, rolledBack, etcdSnapshot, reason } = observation.report ?? {};
  const isOpen = target.state === 'intended' || target.state === 'pending';
  const working = observation.kind === 'working' ? observation : undefined;
  const isDrained =
    isOpen && working?.waitsFor !== undefined && node !== undefined && policy.drain.enabled;
  const whoDrains = answerOf(drainDelegation) === false ? 'node' : 'leader';
  // If the attempt began after the time in the record, it belongs to a later run.
  const isRecorded = Date.parse(observation.attempt) <= Date.parse(target.since);
  return {
    name: target.name,
    phase,
    ...always,
    step: phase === 'done' ? undefined : working?.step,
    since: isOpen ? observation.since : lastMoment(target, facts),
    began: isOpen || isRecorded ? observation.attempt : undefined,
    from: from ?? facts.earlierVersion,
    spent,
    delay: (observation.kind === 'sent' && reason) || undefined,
    stalled: working?.stalled || undefined,
    rolledBack,
    etcdSnapshot,
    rollsBack: phase === 'working' ? rollBackTimes(facts, policy) : undefined,
    drains: isDrained ? whoDrains : undefined,
  };
}

function waveOf(look: ViewInput, stage: Stage, { key }: Target): number | undefined {
  const index = wavesOf(look, stage)?.of.get(key);
  return index === undefined ? undefined : index + 1;
}

/** Returns the hold of the target; undefined if nobody holds it any more. */
function holdNow({ hold }: TargetFacts, now: number): HoldView | undefined {
  return hold !== undefined && isHeld(hold, now) ? hold : undefined;
}

/**
 * Returns the version that a done target runs, if it is not the version of the stage. It differs if the plan was edited
 * since, or if the node runs an older version.
 */
function otherVersion(snapshot: Snapshot, stage: Stage, target: Target): string | undefined {
  const { asked = stage.version, version } = factsOf(snapshot, target);
  const isOther = asked !== stage.version || isBehind(snapshot, stage, target);
  return target.state === 'done' && isOther ? (version ?? asked) : undefined;
}

/** The step of an agent that rolls back already, because the new version did not work. */
const ROLLING_BACK = 'RollingBack';

/**
 * Returns when Refit's agent rolls back; undefined for an agent that rolls back already, and for another agent, which
 * does not roll back. This command does not know the flags of the agent, so it uses the times of the policy or the
 * defaults.
 */
function rollBackTimes(
  { agent, observation }: TargetFacts,
  policy: RolloutPolicy,
): TargetView['rollsBack'] {
  if (agent?.ours !== true || observation.kind !== 'working' || observation.part !== 'restart')
    return undefined;
  if (observation.step === ROLLING_BACK) return undefined;
  const { restartTimeoutMs, readyTimeoutMs, soakMs } = { ...AGENT_DEFAULTS, ...policy.agent };
  const unanswered = Date.parse(observation.since) + restartTimeoutMs;
  if (Number.isNaN(unanswered)) return undefined;
  return {
    unanswered: rfc3339(unanswered),
    notReady: rfc3339(unanswered + Math.max(readyTimeoutMs, soakMs)),
  };
}
