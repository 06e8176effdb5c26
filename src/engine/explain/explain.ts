/** Explains a rollout to people: the phase of each target, and what each waiting target waits for. */
import { rfc3339 } from '../../util/clock.ts';
import { onceForEach } from '../../util/memo.ts';
import { counted, listed } from '../../util/phrases.ts';
import { choose } from '../assess/advance.ts';
import type { Assessment } from '../assess/assess.ts';
import { budgetOf, describeUsedUpBudget, retriesThatHold } from '../assess/budget.ts';
import { timeLeft } from '../assess/evaluate-target.ts';
import { untilEarlierVersionsAreRead } from '../gates/earlier-versions-read.ts';
import { isTargetHeld } from '../gates/held-targets.ts';
import { type DecisionContext, factsOf, type Waiting } from '../gates/types.ts';
import { untilAsked } from '../model/asked.ts';
import { abortReason } from '../model/controls.ts';
import { type Cordoned, type Probe, type Wait } from '../model/decision.ts';
import { asksForEarlierVersions } from '../model/earlier-versions.ts';
import { because } from '../model/reasons.ts';
import { inState, isFinal, type Stage, stagesBefore, type Target } from '../model/rollout.ts';
import { type TargetPhase } from '../model/shown-phases.ts';
import { awaitedRetries, retryReason } from '../schedule/awaited-retries.ts';
import * as slots from '../schedule/slots.ts';
import { keptCordons } from './kept-cordons.ts';

export interface Explanation {
  readonly waits: readonly Wait[];
  /** The probes whose answers the assessment needs but does not have. No watch shows these answers. */
  readonly probes: readonly Probe[];
  /**
   * Milliseconds after which the plan must be assessed again even if no watched object changes; undefined if only a
   * change of a watched object matters.
   */
  readonly recheckAfterMs: number | undefined;
}

export interface FullExplanation extends Explanation {
  /** The nodes that stay cordoned after the upgrade. */
  readonly cordoned: readonly Cordoned[];
}

/** Returns the explanation of an assessment. It is computed once, because commands, Events, conditions and metrics of a turn ask for it. */
export const explain = onceForEach(
  (assessment: Assessment): Explanation => explanationOf(assessment, inState),
);

/** A function that returns the pending targets of a stage that wait for a free slot. */
type Counted = (stage: Stage, state: 'pending') => readonly Target[];

/** Returns the explanation. `counted` returns the pending targets of a stage that count as waiting for a slot. */
function explanationOf(assessment: Assessment, counted: Counted): Explanation {
  const { snapshot, now, stage } = assessment;
  const { rollout } = snapshot;
  if (isFinal(rollout)) return { waits: [], recheckAfterMs: undefined, probes: [] };
  const first = preconditionsWait(assessment) ?? earlierVersionsWait(assessment);
  const inFlight = stage && !first ? inFlightWaits(assessment, stage) : [];
  const all = first
    ? [first]
    : [...inFlight, ...retryWaits(assessment), ...pendingWaits(assessment, stage, counted)];
  const rechecks = all.flatMap(({ recheckMs }) => recheckMs ?? []);
  // A deadline that has passed without an effect needs no recheck.
  const deadlines = all.flatMap(({ deadline = now }) => (deadline > now ? [deadline - now] : []));
  const soonest = Math.min(...rechecks, ...deadlines);
  return {
    // The targets of a new rollout have no recorded time, so their wait begins when the plan was created.
    waits: all.map(({ wait }) =>
      rollout.phase === 'new' ? { ...wait, since: rollout.source.created } : wait,
    ),
    recheckAfterMs: Number.isFinite(soonest) ? soonest : undefined,
    probes: all.flatMap(({ probe }) => probe ?? []),
  };
}

/** Returns the wait of a new plan that rolls a run back and has not yet read the record of that run. */
function earlierVersionsWait({ snapshot }: DecisionContext): ExplainedWait | undefined {
  const { rollout, decisions } = snapshot;
  if (rollout.phase !== 'new' || !asksForEarlierVersions(snapshot)) return undefined;
  const { reason, ends, recheckMs, probe } = untilEarlierVersionsAreRead(decisions);
  return {
    wait: { gate: 'versions-follow', reason, ends, since: rollout.source.created, ofStage: true },
    recheckMs,
    probe,
  };
}

function preconditionsWait({
  snapshot: { rollout, preconditions },
}: DecisionContext): ExplainedWait | undefined {
  if (rollout.phase !== 'new') return undefined;
  if (preconditions.kind === 'answered' || preconditions.kind === 'never') return undefined;
  const checking = because('PreconditionsUnknown', 'checking the preconditions of the plan');
  const { reason, ends, ...next } =
    preconditions.kind === 'unasked'
      ? {
          reason: checking,
          ends: 'the API server answers',
          probe: { kind: 'preconditions' } as const,
        }
      : untilAsked(preconditions);
  return {
    wait: { gate: 'preconditions', reason, ends, since: rollout.source.created, ofStage: true },
    ...next,
  };
}

export interface ExplainedWait extends Pick<Waiting, 'recheckMs' | 'probe'> {
  readonly wait: Wait;
  /** The deadline of the target in milliseconds since the epoch; undefined if it has none. */
  readonly deadline?: number | undefined;
}

const IN_FLIGHT_ENDS: Partial<Record<TargetPhase, string>> = {
  intended: 'the signal is written',
  signalled: 'the node answers its signal; if it does not answer, check that its agent runs',
  working: 'the node reports that it is done, or that it failed',
  verifying: 'the node reports that it is done, or that it failed',
};

function inFlightWaits(assessment: Assessment, stage: Stage): ExplainedWait[] {
  const { snapshot, policy, now } = assessment;
  return inState(stage, 'intended').map((target) => {
    const evaluation = assessment.of(stage, target);
    const {
      phase,
      reason,
      ends = IN_FLIGHT_ENDS[phase],
      gate,
      recheckMs,
      until: known,
      probe,
    } = evaluation;
    const facts = factsOf(snapshot, target);
    const { observation } = facts;
    // The time that the node reports, and the deadline, count only after the target was signalled.
    const isSignalled = observation.kind !== 'none';
    // The time that the node reports may be in the future, or may be no valid time.
    const latest = now - (facts.watchedMs ?? 0);
    const reported =
      isSignalled && Date.parse(observation.since) <= latest ? observation.since : rfc3339(latest);
    const since = isSignalled ? reported : target.since;
    const deadline = now + timeLeft(target, facts, policy, now);
    const hasDeadline = isSignalled && Number.isFinite(deadline);
    const until = hasDeadline || known !== undefined ? { until: known ?? rfc3339(deadline) } : {};
    const wait = { target: target.name, gate: gate ?? phase, reason, ends, since, ...until };
    return { wait, recheckMs, probe, ...(hasDeadline ? { deadline } : {}) };
  });
}

/** Returns one wait for each failed target that is tried again. */
function retryWaits({ snapshot, policy, now }: Assessment): ExplainedWait[] {
  return awaitedRetries(snapshot, policy).map((each) => {
    const { target, dueMs, isOrdered } = each;
    const { name, since } = target;
    const reason = retryReason(each);
    const sooner = `or somebody runs refit retry ${name}`;
    const wait = { target: name, gate: 'retry', reason, since };
    if (isOrdered) return { wait: { ...wait, ends: 'the work of the failed attempt has ended' } };
    const until = rfc3339(dueMs);
    return {
      wait: { ...wait, ends: `the pause is over, at ${until}, ${sooner}`, until },
      recheckMs: Math.max(0, dueMs - now),
    };
  });
}

/** Returns why pending targets do not start. Targets with the same reason share one wait. */
function pendingWaits(
  assessment: Assessment,
  stage: Stage | undefined,
  counted: Counted,
): ExplainedWait[] {
  const { rollout } = assessment.snapshot;
  const since = lastProgress(assessment, rollout.stages);
  const ends = 'the record of the plan can be read again';
  if (rollout.unread)
    return [{ wait: { gate: 'record', reason: rollout.unread, ends, since, ofStage: true } }];
  if (assessment.isStopping) return [{ wait: { ...stopOf(assessment), since, ofStage: true } }];
  if (!stage) return [];
  const free = assessment.openSlots;
  // If a gate blocks every target, the wait names this gate even if no slot is free, because a free slot would not end
  // that wait.
  const blocked = free === 0 ? blockedAsOne(assessment, stage) : undefined;
  const { waiting, chosen } = blocked ?? choose(assessment, stage);
  const gated = waiting.map((each) => ({
    ...each,
    since: waitingSince(assessment, stage, each) ?? since,
  }));
  const isBlockedAsOne = waiting.some(({ ofRollout }) => ofRollout === true);
  // If slots are free and the first targets wait for a gate, the gate was not evaluated for the later targets. These
  // later targets do not wait for a slot.
  const isTaken = chosen.length > 0 || free < slots.limitOf(stage);
  const told = new Set([...chosen, ...waiting.map(({ target }) => target)]);
  const unslotted =
    isBlockedAsOne || !isTaken
      ? 0
      : counted(stage, 'pending').filter((target) => !told.has(target)).length;
  const queued = slotWait(assessment, stage, unslotted, since);
  return [...groupWaits(stage, gated), ...queued, ...laterWaits(rollout.stages, stage, counted)];
}

function blockedAsOne(context: DecisionContext, stage: Stage) {
  const [first] = inState(stage, 'pending');
  // The order and the waves are ignored here: while no slot is free, the target waits for nodes in progress anyway.
  const gated = first && slots.gatedTarget(context, stage, first);
  return gated?.ofRollout === true && !gated.probe ? { waiting: [gated], chosen: [] } : undefined;
}

function stopOf({ snapshot, policy }: DecisionContext): Pick<Wait, 'gate' | 'reason' | 'ends'> {
  const { rollout, controls } = snapshot;
  const { problems, reason } = rollout;
  if (controls.abort !== undefined) {
    const { code, message } = abortReason(controls.abort);
    const reason = because(code, `${message}; nothing new starts; nodes in progress finish`);
    return { gate: 'not-aborted', reason, ends: slots.FINISHING_ENDS };
  }
  const [problem] = problems;
  if (problem) {
    const message = `the plan was changed while it ran: ${problem.message}`;
    return {
      gate: 'plan-valid',
      reason: because('InvalidPlan', message),
      ends: 'the plan is corrected',
    };
  }
  const budget = describeUsedUpBudget(snapshot, policy);
  const [retried] = budget === undefined ? retriesThatHold(snapshot, policy) : [];
  if (retried)
    return {
      gate: 'retry',
      reason: because('RetryWaits', `nothing new starts: ${retryReason(retried).message}`),
      ends: `that attempt is done, or somebody runs refit retry ${retried.target.name}`,
    };
  const limit = budget === undefined ? '' : `; ${budget.message}`;
  const message = `nothing new starts: ${reason?.message ?? 'a target failed'}${limit}`;
  const lifts = budget === undefined ? '' : `, unless ${budget.lifts}`;
  if (policy.pausesOnFailure === true)
    return {
      gate: 'failure-budget',
      reason: because('PausedByFailures', message),
      ends: budget === undefined ? 'a failed node is tried again' : budget.lifts,
    };
  return {
    gate: 'failure-budget',
    reason: because('FinishingInFlight', message),
    ends: `${slots.FINISHING_ENDS}${lifts}`,
  };
}

/**
 * Returns the time since which the target waits; undefined if the gate does not know it. The wait begins no earlier
 * than the time at which the target could have started, even if its cause is older.
 */
function waitingSince(
  context: DecisionContext,
  stage: Stage,
  { since, target }: slots.GatedTarget,
) {
  if (since === undefined) return undefined;
  const { rollout } = context.snapshot;
  const couldStart = lastProgress(context, [
    ...stagesBefore(rollout, stage),
    { ...stage, targets: [target] },
  ]);
  const time = Date.parse(since);
  return time > Date.parse(couldStart) && time <= context.now ? since : couldStart;
}

function slotWait(
  { snapshot, policy, now }: DecisionContext,
  stage: Stage,
  count: number,
  since: string,
) {
  if (count <= 0) return [];
  const { maxFailures } = policy;
  const queued = `${counted(count, stage.role)} queued`;
  const kept = stage.failedHoldSlots === true ? inState(stage, 'failed') : [];
  const keepers = listed(kept.map(({ name }) => name));
  const retried = 'a failed node is tried again: run refit retry NODE';
  if (maxFailures > 0 && kept.length > maxFailures) {
    const message = `${queued}; ${kept.length} failed, more than ${budgetOf(policy)} allows: ${keepers}`;
    const reason = because('FinishingInFlight', message);
    const lifted = `${retried}; or failureBudget of the UpgradePolicy is ${kept.length} or more`;
    return [
      { wait: { gate: 'failure-budget', reason, ends: lifted, since, ofStage: true } as const },
    ];
  }
  const atWork = slots.failedInFlightIn(snapshot, now);
  const names = atWork.map(({ target }) => target.name).join(', ');
  const failed =
    names === '' ? '' : `; these failed nodes are still at work and keep a slot: ${names}`;
  const keeping = kept.length === 0 ? '' : `; these failed nodes keep a slot: ${keepers}`;
  const reason = because(
    'NoFreeSlot',
    `${queued} (${slots.limitOf(stage)} at a time)${failed}${keeping}`,
  );
  const recheckMs = Math.min(...atWork.map(({ leftMs }) => leftMs).filter(Number.isFinite));
  const isAtWork = kept.length === 0 || inState(stage, 'intended').length > 0;
  const wait = {
    gate: 'slots',
    reason,
    ends: isAtWork ? 'a node in progress is done' : retried,
    since,
  } as const;
  return [
    {
      wait: { ...wait, ofStage: true as const },
      ...(Number.isFinite(recheckMs) ? { recheckMs } : {}),
    },
  ];
}

function laterWaits(stages: readonly Stage[], active: Stage, counted: Counted): ExplainedWait[] {
  const several = new Set(stages.map(({ command }) => command)).size > 1;
  const titleOf = ({ role, command }: Stage, plural: boolean): string =>
    `${role}${plural ? 's' : ''}${several ? ` of spec.commands[${command}]` : ''}`;
  return stages.slice(stages.indexOf(active) + 1).flatMap((stage) => {
    const { length, 0: first } = counted(stage, 'pending');
    if (!first) return [];
    const who = `${length} ${titleOf(stage, length > 1)} ${length > 1 ? 'wait' : 'waits'}`;
    const message = `${who} until the ${titleOf(active, true)} are done`;
    const ends = 'the earlier stage is done';
    return [
      {
        wait: {
          gate: 'stages',
          reason: because('EarlierStage', message),
          ends,
          since: first.since,
        },
      },
    ];
  });
}

/** Returns the waits, with one wait for all targets that have the same gate and message. This wait names the first of these targets. */
export function groupWaits(
  stage: Stage,
  waiting: readonly (slots.GatedTarget & { readonly since: string })[],
): ExplainedWait[] {
  const alike = Map.groupBy(waiting, ({ gate, reason }) => `${gate} ${reason.message}`);
  return [...alike.values()].flatMap(([first, ...others]) => {
    if (!first) return [];
    const {
      target,
      gate,
      reason,
      ends,
      since,
      until,
      unapproved,
      uncordon,
      after,
      recheckMs,
      probe,
    } = first;
    // A waiting controller also blocks the controllers after it.
    const isOfAll = first.ofRollout === true || others.length > 0 || stage.role === 'controller';
    const more = {
      ...(until === undefined ? {} : { until }),
      ...(isOfAll ? { ofStage: true as const } : {}),
      ...(unapproved === undefined ? {} : { unapproved }),
      ...(uncordon === undefined ? {} : { uncordon }),
      ...(after === undefined ? {} : { after }),
    };
    return { wait: { target: target.name, gate, reason, ends, since, ...more }, recheckMs, probe };
  });
}

/**
 * Returns the latest time at which a target of these stages began or was recorded. If the start of a wait is unknown,
 * this time is used instead.
 */
function lastProgress(
  { snapshot: { facts, rollout }, now }: DecisionContext,
  stages: readonly Stage[],
): string {
  const begun = (target: Target): string => {
    if (target.state !== 'intended') return target.since;
    const { observation } = factsOf({ facts }, target);
    return observation.kind === 'none' ? target.since : observation.attempt;
  };
  const times = new Set(stages.flatMap(({ targets }) => targets.map(begun)));
  const last = [...times]
    .map((text) => [Date.parse(text), text] as const)
    .filter(([time]) => time <= now);
  return last.reduce((a, b) => (a[0] > b[0] ? a : b), last[0] ?? [0, rollout.source.created])[1];
}

const MAX_TARGETS = 10;

/**
 * Returns the explanation for people. It contains the result of `explain`, the waits of the targets that the scheduler
 * passed over, and the nodes that stay cordoned. The waits of passed-over targets are the waits that they would have if
 * a slot were free. Here, held targets do not count as waiting for a slot. In the result of `explain` they do, because
 * `explain` would have to read each target to know whether it is held.
 */
export function explainToPeople(assessment: Assessment): FullExplanation {
  const explanation = explanationOf(assessment, (stage, state) =>
    inState(stage, state).filter((target) => !isTargetHeld(assessment, stage, target)),
  );
  const { waits, probes } = explanation;
  const names = new Set(waits.map(({ target }) => target));
  const known = new Set(waits.map(sentenceOf));
  const more = passedOverWaits(assessment);
  const added = more.filter(({ wait }) => !names.has(wait.target) && !known.has(sentenceOf(wait)));
  return {
    ...explanation,
    waits: [...waits, ...added.map(({ wait }) => wait)],
    probes: [...probes, ...more.flatMap(({ probe }) => probe ?? [])],
    cordoned: keptCordons(assessment),
  };
}

/**
 * Returns the waits of targets that the scheduler has passed over. Such a target is still pending, although a target
 * later in the list has started. The state `skipped` has another meaning.
 */
function passedOverWaits(assessment: Assessment): ExplainedWait[] {
  const { snapshot, stage, isStopping } = assessment;
  const { rollout } = snapshot;
  if (!stage || isFinal(rollout) || rollout.unread || isStopping) return [];
  const last = stage.targets.findLastIndex(({ state }) => state !== 'pending');
  const waiting = inState({ targets: stage.targets.slice(0, Math.max(0, last)) }, 'pending')
    .slice(0, MAX_TARGETS)
    .flatMap((target) => slots.chooseTargets(assessment, stage, [target], 1).waiting)
    // The waits of the whole rollout are left out, because `explain` returns them already.
    .filter(({ ofRollout }) => ofRollout !== true)
    .map((refused) => ({
      ...refused,
      since: waitingSince(assessment, stage, refused) ?? refused.target.since,
    }));
  return groupWaits(stage, waiting);
}

function sentenceOf({ gate, reason }: Wait): string {
  return `${gate} ${reason.message}`;
}
