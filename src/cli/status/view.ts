/** The JSON form of `refit status` (docs/reference/cli.md), from which all other outputs are made. */

import { type Assessment, phaseOf } from '../../engine/assess/assess.ts';
import { describeEndByBudget, isStopping } from '../../engine/assess/budget.ts';
import { isBehind, lastMoment, planEndOf } from '../../engine/assess/ended.ts';
import { stepEnd } from '../../engine/assess/evaluate-target.ts';
import { isUpgradedByLaterStage } from '../../engine/assess/retry.ts';
import type { Dialect } from '../../engine/contract/dialect.ts';
import type { FullExplanation } from '../../engine/explain/explain.ts';
import { factsOf } from '../../engine/gates/types.ts';
import type {
  Cordoned,
  PlanPhase,
  Snapshot,
  TargetFacts,
  TargetPhase,
  TargetReport,
  Wait,
} from '../../engine/model/decision.ts';
import { isUnasked, remedyOf } from '../../engine/model/reasons.ts';
import {
  activeStage,
  isFinal,
  type Rollout,
  type Stage,
  type Target,
  targetsIn,
} from '../../engine/model/rollout.ts';
import { AGENT_DEFAULTS, type RolloutPolicy } from '../../engine/policy/rollout-policy.ts';
import { limitOf } from '../../engine/schedule/slots.ts';
import type { NodeAgent } from '../../signal/agent-presence.ts';
import { rfc3339 } from '../../util/clock.ts';
import { zoneOf } from '../../util/maintenance-windows.ts';
import { printable } from '../../util/printable.ts';
import type { LeaderView } from './load.ts';

export interface TargetView extends Pick<TargetReport, 'from' | 'spent' | 'rolledBack'> {
  readonly name: string;
  readonly phase: TargetPhase;
  readonly step?: string | undefined;
  /** RFC 3339. */
  readonly since: string;
  /** RFC 3339: when it was signalled, if its object shows that. */
  readonly began?: string | undefined;
  /** Why it failed, as its agent says. */
  readonly failure?: string | undefined;
  /** Why its agent has not begun yet, as it says. */
  readonly delay?: string | undefined;
  /** What it stalls on while it works, as its object says. */
  readonly stalled?: string | undefined;
  /** RFC 3339: when its agent rolls back, if the new version has not answered by then, or the node is not Ready by then. */
  readonly rollsBack?: { readonly unanswered: string; readonly notReady: string } | undefined;
  /** Who cordons, drains and uncordons it, while it is at one of these. */
  readonly drains?: 'leader' | 'node' | undefined;
  /** Whose agent acts on it; absent if its dialect has no agents. */
  readonly agent?: NodeAgent | undefined;
  readonly fetchesAhead?: boolean | undefined;
  /** True if nothing is left to do there: it runs the version already, or a later one of the plan. */
  readonly isThere?: boolean | undefined;
  /** The version that it runs, where that is not the one that it is recorded as upgraded to. */
  readonly runs?: string | undefined;
  /** True if its object does not exist any more. */
  readonly gone?: boolean | undefined;
}

export interface StageView extends Pick<Stage, 'command' | 'role' | 'version' | 'maxInFlight'> {
  readonly active: boolean;
  /** The selector, if nothing matched it. */
  readonly selection?: string | undefined;
  readonly targets: readonly TargetView[];
}

export interface PlanView
  extends Pick<Rollout['source'], 'kind' | 'name' | 'uid' | 'created'>,
    Pick<Rollout, 'id'> {
  readonly dialect: string;
  readonly phase: PlanPhase;
  readonly namespace?: string | undefined;
  /** Of a Machine: name of its Cluster. */
  readonly cluster?: string | undefined;
  /** RFC 3339: when this run began; absent if nothing is recorded yet. A plan may have had other runs and versions before. */
  readonly started?: string | undefined;
  /** RFC 3339: when the last target ended; absent if the plan did not end with it. */
  readonly ended?: string | undefined;
  /** True of an invalid plan that goes on by itself, once its channel answers. */
  readonly goesOn?: boolean | undefined;
  /** One sentence: why it failed, is about to, or cannot start. */
  readonly reason?: string | undefined;
  /** One sentence, of a plan that is or will be refused: what a person can do about the reason. */
  readonly remedy?: string | undefined;
  /** One sentence, of a failed plan with targets that never started: which limit was used up, by which failures. */
  readonly stopped?: string | undefined;
  readonly stages: readonly StageView[];
  readonly waits: readonly Wait[];
  /** Names of the targets that start next, in order. */
  readonly next: readonly string[];
  readonly policy?: string | undefined;
  /** Of its maintenance windows, if they have one and it is not UTC. */
  readonly timeZone?: string | undefined;
  readonly paused?: 'plan' | 'policy' | undefined;
  readonly abort?: string | undefined;
  /** The nodes that stay cordoned, because Refit removes only its own cordons. */
  readonly cordoned?: readonly Cordoned[] | undefined;
  /** What people should know although it decides nothing, one sentence each. */
  readonly warnings?: readonly string[] | undefined;
  /** What could not be checked, one sentence each. */
  readonly unseen?: readonly string[] | undefined;
}

export interface StatusView {
  readonly leader: LeaderView;
  /** Names of nodes that are still cordoned for a plan that is gone. */
  readonly orphaned?: readonly string[];
  /** RFC 3339: since when the API server does not answer; everything else is as old as that. */
  readonly silentSince?: string;
  readonly plans: readonly PlanView[];
}

/** What is recorded and seen now, and what the controller would record next. */
export interface ViewInput extends Assessment, Pick<PlanView, 'namespace' | 'cluster'> {
  readonly explanation: Pick<FullExplanation, 'waits' | 'cordoned'>;
  readonly upcoming: Rollout;
  readonly warnings: readonly string[];
  readonly unseen: readonly string[];
}

/** Phases of plans that have not started, and do not unless somebody changes something. */
const REFUSED: ReadonlySet<PlanPhase> = new Set(['new', 'invalid', 'incomplete']);

export function viewOf(dialect: Pick<Dialect, 'name'>, look: ViewInput): PlanView {
  const { snapshot, policy, warnings, unseen } = look;
  const { cordoned } = look.explanation;
  const { rollout, controls } = snapshot;
  const { kind, name, uid, created } = rollout.source;
  const end = planEndOf(snapshot, look.now);
  // A new plan may be about to be refused, and a failure about to be recorded.
  const reason = end.reason ?? look.upcoming.reason ?? rollout.problems[0];
  return harmless({
    dialect: dialect.name,
    kind,
    namespace: look.namespace,
    cluster: look.cluster,
    name,
    uid,
    id: rollout.id,
    created,
    started: startOf(snapshot),
    ended: endOf(snapshot),
    phase: end.phase,
    goesOn:
      (rollout.phase === 'invalid' && rollout.problems[0]?.code === 'ChannelUnanswered') ||
      undefined,
    reason: reason?.message,
    remedy: reason !== undefined && REFUSED.has(end.phase) ? remedyOf(reason.code) : undefined,
    // Of an edited plan, the edit counts.
    stopped: end.phase === 'failed' ? describeEndByBudget(snapshot, policy) : undefined,
    stages: rollout.stages.map((stage) => stageView(stage, look)),
    waits: waitsOf(look),
    next: nextOf(look),
    policy: policy.name,
    timeZone: zoneOf([...policy.windows, ...(policy.planWindows ?? [])]),
    ...(controls.paused || policy.paused ? { paused: controls.paused ? 'plan' : 'policy' } : {}),
    abort: controls.abort,
    cordoned: cordoned.length === 0 ? undefined : cordoned,
    // What is only about what comes, such as another plan for the same nodes, an ended plan has no use for.
    warnings: warnings.length === 0 || isFinal(rollout) ? undefined : warnings,
    unseen: unseen.length === 0 ? undefined : unseen,
  });
}

/** Also drops what is undefined. Nodes write some of it: no control character of theirs may reach an administrator's terminal. */
export function harmless<T>(view: T): T {
  const clean = (_key: string, value: unknown): unknown =>
    typeof value === 'string' ? printable(value) : value;
  return JSON.parse(JSON.stringify(view), clean) as T;
}

/** An end that is about to be recorded is no wait. */
function waitsOf({ snapshot, explanation: { waits }, upcoming, policy }: ViewInput): Wait[] {
  if (snapshot.rollout.phase === 'new' && isFinal(upcoming)) return [];
  const ends = stepEnds(snapshot, policy);
  return waits
    .filter(({ gate, reason }) => gate !== 'done' && gate !== 'failed' && !isUnasked(reason))
    .map((wait) => (wait.target === undefined ? wait : withEnd(wait, ends.get(wait.target))));
}

/** The ends of the steps of targets in progress, by name, in milliseconds since the Unix epoch. */
function stepEnds(snapshot: Snapshot, policy: RolloutPolicy): Map<string, number> {
  const moving = targetsIn(snapshot.rollout, 'intended');
  return new Map(moving.map((target) => [target.name, stepEnd(factsOf(snapshot, target), policy)]));
}

/** The deadline of the step or of the target, whichever is first. */
function withEnd(wait: Wait, end = Number.POSITIVE_INFINITY): Wait {
  const isSooner = Date.parse(wait.until ?? '') <= end;
  if (isSooner || !Number.isFinite(end)) return wait;
  return { ...wait, until: rfc3339(end) };
}

/** The earliest moment that is recorded of a target, or at which one was signalled. */
function startOf({ rollout, facts }: Snapshot): string | undefined {
  if (rollout.phase === 'new') return undefined;
  const created = Date.parse(rollout.source.created);
  const moments = rollout.stages.flatMap(({ targets }) =>
    targets.flatMap((target) => {
      const { observation } = factsOf({ facts }, target);
      return observation.kind === 'none' ? target.since : [target.since, observation.attempt];
    }),
  );
  // An attempt of an earlier plan, or what a wrong clock wrote, is no start of this one.
  const own = moments.filter((moment) => Date.parse(moment) >= created);
  return own.toSorted((a, b) => Date.parse(a) - Date.parse(b))[0];
}

/** When somebody aborted it is recorded of those that it stopped, and of nothing else. */
function endOf(snapshot: Snapshot): string | undefined {
  const { rollout, controls } = snapshot;
  const targets = rollout.stages.flatMap((stage) => stage.targets);
  const isTold = controls.abort === undefined || targets.some(({ state }) => state === 'failed');
  if (!isFinal(rollout) || !isTold) return undefined;
  const moments = targets.map((target) => lastMoment(target, factsOf(snapshot, target)));
  return moments.toSorted((a, b) => Date.parse(a) - Date.parse(b)).at(-1);
}

function stageView(stage: Stage, look: ViewInput): StageView {
  const { rollout } = look.snapshot;
  return {
    command: stage.command,
    role: stage.role,
    version: stage.version,
    maxInFlight: limitOf(stage),
    active: !isFinal(rollout) && stage === activeStage(rollout),
    selection: matchless(stage, rollout),
    targets: stage.targets.map((target) => targetView(stage, target, look)),
  };
}

/**
 * Returns the selector of a stage if nothing matched it, because it may be a mistake.
 * A refused plan has no targets, and an unread record says nothing about them.
 */
function matchless({ targets, selection }: Stage, { phase, unread }: Rollout): string | undefined {
  const isKnown = phase !== 'invalid' && unread === undefined;
  return isKnown && targets.length === 0 ? selection : undefined;
}

function targetView(stage: Stage, target: Target, look: ViewInput): TargetView {
  const { snapshot, policy } = look;
  const phase = phaseOf(look, stage, target);
  const facts = factsOf(snapshot, target);
  const { exists, observation, drainDelegation, agent, node } = facts;
  const isThere = facts.isThere === true || isUpgradedByLaterStage(snapshot.rollout, stage, target);
  const isTold = isThere && (phase === 'pending' || phase === 'failed');
  const fetchesAhead = (phase === 'pending' && facts.prefetch === 'asked') || undefined;
  const always = {
    agent,
    fetchesAhead,
    isThere: isTold || undefined,
    runs: otherVersion(snapshot, stage, target),
    gone: !exists || undefined,
  };
  if (observation.kind === 'none')
    return { name: target.name, phase, since: target.since, ...always };
  const { from, spent, rolledBack, reason } = observation.report ?? {};
  const isOpen = target.state === 'intended' || target.state === 'pending';
  const working = observation.kind === 'working' ? observation : undefined;
  const isDrained =
    isOpen && working?.waitsFor !== undefined && node !== undefined && policy.drain.enabled;
  const whoDrains = drainDelegation === false ? 'node' : 'leader';
  // A later attempt is not the one that is recorded.
  const isRecorded = Date.parse(observation.attempt) <= Date.parse(target.since);
  return {
    name: target.name,
    phase,
    ...always,
    step: phase === 'done' ? undefined : working?.step,
    since: isOpen ? observation.since : lastMoment(target, facts),
    began: isOpen || isRecorded ? observation.attempt : undefined,
    from,
    spent,
    failure: observation.kind === 'failed' && phase === 'failed' ? observation.message : undefined,
    delay: (observation.kind === 'sent' && reason) || undefined,
    stalled: working?.stalled || undefined,
    rolledBack,
    rollsBack: phase === 'working' ? rollBackTimes(facts, policy) : undefined,
    drains: isDrained ? whoDrains : undefined,
  };
}

/** What a target runs that is recorded as done, if the plan says something else now or the node runs something older. */
function otherVersion(snapshot: Snapshot, stage: Stage, target: Target): string | undefined {
  const { asked = stage.version, version } = factsOf(snapshot, target);
  const isOther = asked !== stage.version || isBehind(snapshot, stage, target);
  return target.state === 'done' && isOther ? (version ?? asked) : undefined;
}

/** Only of our agent: another one does not roll back. Its flags are not known here, so a policy or the defaults count. */
function rollBackTimes(
  { agent, observation }: TargetFacts,
  policy: RolloutPolicy,
): TargetView['rollsBack'] {
  if (agent?.ours !== true || observation.kind !== 'working' || observation.part !== 'restart')
    return undefined;
  const { restartTimeoutMs, readyTimeoutMs, soakMs } = { ...AGENT_DEFAULTS, ...policy.agent };
  const unanswered = Date.parse(observation.since) + restartTimeoutMs;
  if (Number.isNaN(unanswered)) return undefined;
  return {
    unanswered: rfc3339(unanswered),
    notReady: rfc3339(unanswered + Math.max(readyTimeoutMs, soakMs)),
  };
}

/** The targets that fill the next free slots; if all are in flight, the first of the next stage. */
function nextOf({ snapshot, explanation: { waits }, upcoming, policy }: ViewInput): string[] {
  if (isFinal(upcoming) || isStopping({ ...snapshot, rollout: upcoming }, policy)) return [];
  const { rollout } = snapshot;
  const holding = waits.filter(({ ofStage, reason }) => ofStage !== true && !isUnasked(reason));
  const held = new Set(holding.map(({ target }) => target));
  for (const stage of rollout.stages) {
    const pending = stage.targets
      .filter(({ state }) => state === 'pending')
      .map(({ name }) => name);
    const ready = pending.filter((name) => !held.has(name));
    // If a gate holds all of them, the first is still next.
    if (pending.length > 0) return (ready.length > 0 ? ready : pending).slice(0, limitOf(stage));
  }
  return [];
}
