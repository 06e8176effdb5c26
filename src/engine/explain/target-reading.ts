/** Reads the stages of a plan and their targets, for the reading of the plan. */
import type { DrainProgress } from '../../drain/drain-node.ts';
import type { NodeAgent } from '../../signal/agent-presence.ts';
import { type Hold, isHeld } from '../../signal/holds.ts';
import { rfc3339 } from '../../util/clock.ts';
import { defined } from '../../util/json.ts';
import { ownMember } from '../../util/own-member.ts';
import { isOlder, isSameVersion } from '../../versions/release-parts.ts';
import type { WayBack } from '../../versions/way-back.ts';
import { stoppedTargets } from '../assess/advance.ts';
import { type Assessment, phaseOf } from '../assess/assess.ts';
import { isLastingBehind, lastMoment, mayReportLate } from '../assess/ended.ts';
import { failureOf } from '../assess/target-failures.ts';
import { pinOf } from '../gates/pins.ts';
import {
  factsOf,
  hadVersionBefore,
  labelsOf,
  nodeNameOf,
  versionAsked,
  versionBefore,
} from '../gates/types.ts';
import { answerOf } from '../model/asked.ts';
import type { Observation, TargetFacts, TargetReport } from '../model/facts.ts';
import type { Reason } from '../model/reasons.ts';
import {
  activeStage,
  isFinal,
  isUpgradedByLaterStage,
  laterUpgrade,
  type RecordedState,
  type Rollout,
  type ShownRole,
  type Stage,
  shownRole,
  type Target,
  withKubernetesVersion,
  withStages,
} from '../model/rollout.ts';
import type { TargetPhase } from '../model/shown-phases.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { AGENT_DEFAULTS, type RolloutPolicy } from '../policy/rollout-policy.ts';
import { limitOf } from '../schedule/slots.ts';
import { wavesOf } from '../schedule/waves.ts';
import { wayBackOf } from './way-back.ts';

/** One stage of a plan. `maxInFlight` is the number of targets that may be in progress at the same time. */
export interface StageReading extends Pick<Stage, 'command' | 'version' | 'maxInFlight'> {
  /** The other controller that chooses which target comes next; undefined if there is none. */
  readonly chosenBy: string | undefined;
  /** What people call a target of the stage. */
  readonly role: ShownRole;
  /** True if failed targets keep their slots until they are tried again. */
  readonly failedHoldSlots: boolean;
  readonly isActive: boolean;
  /** The selector of the targets, if no Node matches it. */
  readonly selection: string | undefined;
  readonly targets: readonly TargetReading[];
}

/** One target of a plan. All times are in RFC 3339. */
export interface TargetReading {
  readonly name: string;
  /** The name of its Node. */
  readonly node: string;
  /** The name of the object for whose sake the target is upgraded, if people know the target by this name, too. */
  readonly subject: string | undefined;
  readonly phase: TargetPhase;
  readonly recorded: RecordedState;
  /** The time of the last change. */
  readonly since: string;
  /** The version that the plan wants now. */
  readonly wants: string;
  /** The version that the target was signalled with; undefined if it was not signalled, or if nobody knows this version. */
  readonly asked: string | undefined;
  /**
   * The version that the target runs, as its object says. The version of a kubelet may lack the build. Undefined also for
   * a target that has just been upgraded, and whose object still shows an earlier version.
   */
  readonly ran: string | undefined;
  /** The version that the target ran before its upgrade. */
  readonly from: string | undefined;
  /** True if the target is done and ran its version already before its last attempt, which upgraded nothing. */
  readonly hadVersion: boolean;
  /**
   * True if the target is done, but does not run what its stage wants: the plan was edited, or the node is older, or it
   * was upgraded further by a later stage or after the end of the run.
   */
  readonly differs: boolean;
  /** True if a pending or failed target already runs the version of its stage, or a later version of the plan. */
  readonly isThere: boolean;
  /** Why the target failed; undefined if it has not failed, or if nobody knows it. */
  readonly cause: Reason | undefined;
  /** Why the target cannot start, if the plan is or was refused because of its targets. */
  readonly refusal: Reason | undefined;
  /** The work of this attempt; undefined if the target has not got its signal. */
  readonly work: WorkReading | undefined;
  /** The agent that acts on the target; undefined if its dialect has no agents. */
  readonly agent: NodeAgent | undefined;
  /** True if a pending target was asked to download ahead. */
  readonly fetchesAhead: boolean;
  readonly exists: boolean;
  /** The hold that keeps a pending or skipped target from starting. */
  readonly held: Hold | undefined;
  /** Why a pin of the policy keeps a pending or skipped target from starting. */
  readonly pinned: Reason | undefined;
  /** Says whether a target that is done can go back to its earlier version. */
  readonly wayBack: WayBack | undefined;
  /** The number of the wave of the target, from 1; undefined without waves, and for the control plane. */
  readonly wave: number | undefined;
  /** The zone of the target's Node; undefined if the Node has no label for the zone. */
  readonly zone: string | undefined;
}

/** What the node or its Job reports about the work. */
export interface WorkReading extends Pick<TargetReport, 'spent' | 'rolledBack' | 'etcdSnapshot'> {
  readonly kind: Exclude<Observation['kind'], 'none'>;
  readonly step: string | undefined;
  /** The time at which the target was signalled; undefined if only a later run knows it. */
  readonly began: string | undefined;
  /** Why the agent has not begun yet, in its words. */
  readonly delay: string | undefined;
  /** Why the work makes no progress, in the words of what does the work. */
  readonly stalled: string | undefined;
  readonly rollsBack: RollBackTimes | undefined;
  /** Who cordons, drains and uncordons the node; undefined outside of these steps. */
  readonly drains: 'leader' | 'node' | undefined;
  /** What is left of a drain by the leader; undefined outside of such a drain. */
  readonly drain: DrainLeft | undefined;
}

/** The pods that are left of a drain, and the PodDisruptionBudgets that block them, by name. */
export type DrainLeft = Pick<DrainProgress, 'left' | 'pods' | 'budgets'>;

/**
 * When the agent rolls back: `unanswered` if the new version has not answered by then, and `notReady` if the node is not
 * Ready by then.
 */
export type RollBackTimes = Readonly<Record<'unanswered' | 'notReady', string>>;

/** The label of a Node that names its zone (https://kubernetes.io/docs/reference/labels-annotations-taints/). */
const ZONE_LABEL = 'topology.kubernetes.io/zone';

type Refusals = ReadonlyMap<Target, Reason>;

/** Reads every target. `upcoming` is the rollout as the controller would record it next. */
export function readStages(assessment: Assessment, upcoming: Rollout): StageReading[] {
  const { rollout } = assessment.snapshot;
  const refusals = refusalsIn(assessment, upcoming);
  return rollout.stages.map((stage) => ({
    command: stage.command,
    role: shownRole(stage),
    version: stage.version,
    maxInFlight: limitOf(stage),
    chosenBy: stage.chosenElsewhere?.by,
    failedHoldSlots: stage.failedHoldSlots === true,
    isActive: !isFinal(rollout) && stage === activeStage(rollout),
    selection: matchless(stage, rollout),
    targets: stage.targets.map((target) => readTarget(assessment, stage, target, refusals)),
  }));
}

/** Returns why targets cannot start, if the plan is or was refused because of its targets. Otherwise returns nothing. */
function refusalsIn(assessment: Assessment, upcoming: Rollout): Refusals {
  if (upcoming.phase !== 'incomplete') return new Map();
  return new Map(stoppedTargets(assessment).map(({ target, verdict }) => [target, verdict.reason]));
}

/**
 * Returns the selector of a stage if no Node matched it, because the selector may be wrong. Returns undefined for a
 * refused plan, which has no targets, and if the record of the plan was not read, because the targets are unknown then.
 */
function matchless({ targets, selection }: Stage, { phase, unread }: Rollout): string | undefined {
  const isKnown = phase !== 'invalid' && unread === undefined;
  return isKnown && targets.length === 0 ? selection : undefined;
}

function readTarget(
  assessment: Assessment,
  stage: Stage,
  target: Target,
  refusals: Refusals,
): TargetReading {
  const { snapshot, policy, now } = assessment;
  const phase = phaseOf(assessment, stage, target);
  const facts = factsOf(snapshot, target);
  const isThere =
    facts.isThere ||
    isUpgradedByLaterStage(snapshot.rollout, stage, target) ||
    (phase === 'failed' && hasUpgraded(stage, facts));
  const isLeft = phase === 'pending' || phase === 'skipped';
  const work = workOf(assessment, phase, target, facts);
  const later = versionOfLaterStage(assessment, stage, target);
  return {
    name: target.name,
    node: nodeNameOf(target, facts),
    subject: facts.subject,
    phase,
    recorded: target.state,
    since: sinceOf(target, facts, now),
    wants: stage.version,
    asked: facts.asked,
    ran: later ?? versionNow(assessment, stage, target, facts),
    from: versionBefore(facts),
    hadVersion: target.state === 'done' && hadVersionBefore(facts, stage),
    differs: later !== undefined || isOther(assessment, stage, target, facts),
    isThere: isThere && (phase === 'pending' || phase === 'failed'),
    cause: phase === 'failed' ? failureOf(snapshot, target) : undefined,
    refusal: refusals.get(target),
    work,
    agent: facts.agent,
    fetchesAhead:
      phase === 'pending' &&
      (facts.prefetch === 'asked' || facts.requiredDownload?.kind === 'asked'),
    exists: facts.exists,
    held: isLeft ? holdNow(facts, now) : undefined,
    pinned: isLeft ? pinOf(policy, stage, target, facts) : undefined,
    wayBack: wayBackOf(assessment, stage, target),
    wave: waveOf(assessment, stage, target),
    zone: ownMember(labelsOf(snapshot, target), ZONE_LABEL) || undefined,
  };
}

/**
 * Returns true if a failed target runs the version nevertheless, also in a dialect without version rules: its object
 * reports exactly this version, or its work has succeeded and nothing reports an older version. Without its build, the
 * version of a kubelet alone does not show that.
 */
function hasUpgraded(stage: Stage, { version, observation }: TargetFacts): boolean {
  if (stage.keepsVersion === true || stage.forced) return false;
  const wanted = withKubernetesVersion(stage).version;
  if (version !== undefined && isSameVersion(version, wanted)) return true;
  return observation.kind === 'succeeded' && !isOlder(version, wanted);
}

/** Returns the time of the last change, as far as it is recorded or reported. */
function sinceOf(target: Target, facts: TargetFacts, now: number): string {
  const { observation } = facts;
  // An attempt that is not recorded yet begins at the earliest now.
  if (observation.kind === 'none') return target.lacksAttempt ? rfc3339(now) : target.since;
  return isOpen(target) ? observation.since : lastMoment(target, facts);
}

function isOpen({ state }: Target): boolean {
  return state === 'intended' || state === 'pending';
}

function workOf(
  { policy }: Assessment,
  phase: TargetPhase,
  target: Target,
  facts: TargetFacts,
): WorkReading | undefined {
  const { observation, drainDelegation, node } = facts;
  if (observation.kind === 'none') return undefined;
  const { spent, rolledBack, etcdSnapshot, reason } = observation.report ?? {};
  const working = observation.kind === 'working' ? observation : undefined;
  const isDrained =
    isOpen(target) && working?.waitsFor !== undefined && node !== undefined && policy.drain.enabled;
  const whoDrains = answerOf(drainDelegation) === false ? 'node' : 'leader';
  // If the attempt began after the time in the record, it belongs to a later run.
  const isRecorded = Date.parse(observation.attempt) <= Date.parse(target.since);
  return {
    kind: observation.kind,
    step: phase === 'done' ? undefined : working?.step,
    began: isOpen(target) || isRecorded ? observation.attempt : undefined,
    spent,
    delay: (observation.kind === 'sent' && reason) || undefined,
    stalled: working?.stalled || undefined,
    rolledBack,
    etcdSnapshot,
    rollsBack: phase === 'working' ? rollBackTimes(facts, policy) : undefined,
    drains: isDrained ? whoDrains : undefined,
    drain: isDrained ? drainLeft(facts) : undefined,
  };
}

function drainLeft({ drain }: Pick<TargetFacts, 'drain'>): DrainLeft | undefined {
  if (drain?.kind !== 'draining') return undefined;
  const { left, pods, budgets } = drain;
  return defined({ left, pods, budgets });
}

/** Returns the number of the wave of the target, from 1; undefined if the target belongs to no wave. */
export function waveOf(
  assessment: Pick<Assessment, 'snapshot' | 'policy'>,
  stage: Stage,
  { key }: Target,
): number | undefined {
  const index = wavesOf(assessment, stage)?.of.get(key);
  return index === undefined ? undefined : index + 1;
}

/** Returns the hold of the target; undefined if nobody holds it any more. */
function holdNow({ hold }: TargetFacts, now: number): Hold | undefined {
  return hold !== undefined && isHeld(hold, now) ? hold : undefined;
}

/** Returns the version that the target runs, as its object says; undefined if nobody knows it. */
function versionNow(
  { snapshot, now }: Assessment,
  stage: Stage,
  target: Target,
  { version }: TargetFacts,
): string | undefined {
  return mayReportLate(snapshot, stage, target, now) ? undefined : version;
}

/**
 * Returns the version that a done target runs because a later stage has brought it there; undefined if no later
 * stage has, or if it is the version of this stage.
 */
function versionOfLaterStage(
  assessment: Assessment,
  stage: Stage,
  target: Target,
): string | undefined {
  const { snapshot } = assessment;
  const later = target.state === 'done' ? laterUpgrade(snapshot.rollout, stage, target) : undefined;
  if (later === undefined) return undefined;
  const facts = factsOf(snapshot, later.target);
  const ran = isOther(assessment, later.stage, later.target, facts)
    ? versionNow(assessment, later.stage, later.target, facts)
    : versionAsked(facts, later.stage);
  return ran === versionAsked(factsOf(snapshot, target), stage) ? undefined : ran;
}

/** A target that is done, and the other version that it runs. */
export interface DifferingTarget {
  readonly name: string;
  /** Undefined if the target does not exist any more. */
  readonly ran: string | undefined;
}

/** Returns the targets that are done, but run another version or do not exist any more. It reads less of each target than `readStages` does. */
export function differingTargets(assessment: Assessment): DifferingTarget[] {
  return withStages(assessment.snapshot.rollout).flatMap(({ stage, target }): DifferingTarget[] => {
    const facts = factsOf(assessment.snapshot, target);
    const isGone = target.state === 'done' && !facts.exists;
    if (isGone) return [{ name: target.name, ran: undefined }];
    if (!isOther(assessment, stage, target, facts)) return [];
    const ran = versionNow(assessment, stage, target, facts);
    return ran === undefined ? [] : [{ name: target.name, ran }];
  });
}

/**
 * Returns true if a done target does not run the version of its stage: the plan was edited since, or the node is older,
 * although it has had the time to report its new version, or somebody has upgraded it further after the end of the run.
 */
function isOther(
  { snapshot, now }: Assessment,
  stage: Stage,
  target: Target,
  facts: TargetFacts,
): boolean {
  if (target.state !== 'done') return false;
  return (
    versionAsked(facts, stage) !== stage.version ||
    isLastingBehind(snapshot, stage, target, now) ||
    isAhead(snapshot, stage, target, facts)
  );
}

/** Returns true if the target runs a newer version than the run installed. A virtual Node does not report the version of a host. */
function isAhead(
  { rollout }: Snapshot,
  stage: Stage,
  target: Target,
  { version, virtual }: TargetFacts,
): boolean {
  if (!isFinal(rollout) || stage.keepsVersion === true || virtual !== undefined) return false;
  if (version === undefined || isUpgradedByLaterStage(rollout, stage, target)) return false;
  return isOlder(withKubernetesVersion(stage).version, version);
}

/** The step of an agent that rolls back already, because the new version did not work. */
const ROLLING_BACK = 'RollingBack';

/**
 * Returns when Refit's agent rolls back; undefined for an agent that rolls back already, and for another agent, which
 * does not roll back. The reader does not know the flags of the agent, so it uses the times of the policy or the
 * defaults.
 */
function rollBackTimes(
  { agent, observation }: TargetFacts,
  policy: RolloutPolicy,
): RollBackTimes | undefined {
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
