/** Explains a rollout to people: the phase of each target, and what each waiting target waits for. */
import { rfc3339 } from '../../util/clock.ts';
import { defined } from '../../util/json.ts';
import { onceForEach } from '../../util/memo.ts';
import { counted, listed } from '../../util/phrases.ts';
import type { Assessment } from '../assess/assess.ts';
import { waitBeforeAdmission } from '../assess/before-admission.ts';
import { budgetOf, describeUsedUpBudget, retriesThatHold } from '../assess/budget.ts';
import { deadlineOf } from '../assess/needs.ts';
import { isHeldByFailures, type Unstarted, unstartedTargets } from '../assess/unstarted.ts';
import { isTargetHeld } from '../gates/held-targets.ts';
import { notPaused } from '../gates/not-paused.ts';
import { type DecisionContext, factsOf } from '../gates/types.ts';
import { abortReason } from '../model/controls.ts';
import type { Cordoned, Probe, Wait } from '../model/decision.ts';
import { because, type Reason } from '../model/reasons.ts';
import {
  inState,
  isFinal,
  type Stage,
  shownRole,
  stagesBefore,
  type Target,
  targetsIn,
} from '../model/rollout.ts';
import type { TargetPhase } from '../model/shown-phases.ts';
import { nodeRetriedBy } from '../model/tried-again.ts';
import { awaitedRetries, retryReason } from '../schedule/awaited-retries.ts';
import * as slots from '../schedule/slots.ts';
import { approvalWait } from '../schedule/wave-approval.ts';
import { keptCordons } from './kept-cordons.ts';
import { wavesAhead } from './stops-ahead.ts';
import { waveOf } from './target-reading.ts';

export interface Explanation {
  readonly waits: readonly Wait[];
}

export interface FullExplanation extends Explanation {
  /** The probes whose answers some of these waits lack, although no decision depends on the answers now. */
  readonly probes: readonly Probe[];
  /** The nodes that stay cordoned after the upgrade. */
  readonly cordoned: readonly Cordoned[];
}

/** Returns the explanation of an assessment. It is computed once, because Events, conditions and metrics of a turn ask for it. */
export const explain = onceForEach((assessment: Assessment): Explanation => {
  const waits = waitsWith(assessment, () => true);
  return { waits: [...waits, ...pauseWait(assessment, waits)] };
});

/**
 * Returns the wait for the end of a pause, if no target of the active stage has it: the pending targets of later stages
 * also wait for it. People read this wait apart from the others.
 */
function pauseWait(assessment: Assessment, waits: readonly Wait[]): Wait[] {
  const { snapshot, policy, isStopping } = assessment;
  const { rollout, plan } = snapshot;
  const isHeld = rollout.phase === 'running' && !rollout.unread && !isStopping;
  if (!isHeld || waits.some(({ reason }) => reason.code === 'Paused')) return [];
  const verdict = notPaused.evaluate({ policy, plan });
  if (verdict.kind !== 'wait' || targetsIn(rollout, 'pending').length === 0) return [];
  const { reason, ends, since = lastProgress(assessment, rollout.stages) } = verdict;
  return [{ gate: notPaused.name, reason, ends, since, ofStage: true }];
}

/** Says whether a pending target counts as waiting for a slot or for an earlier stage. */
type IsCounted = (stage: Stage, target: Target) => boolean;

function waitsWith(assessment: Assessment, isCounted: IsCounted): readonly Wait[] {
  const { snapshot, stage } = assessment;
  const { rollout } = snapshot;
  if (isFinal(rollout)) return [];
  const first = waitBeforeAdmission(snapshot);
  if (first) {
    const { gate, reason, ends } = first;
    return [{ gate, reason, ends, since: rollout.source.created, ofStage: true }];
  }
  const inFlight = stage ? inFlightWaits(assessment, stage) : [];
  const all = [
    ...inFlight,
    ...retryWaits(assessment),
    ...pendingWaits(assessment, stage, isCounted),
  ];
  // The targets of a new rollout have no recorded time, so their wait begins when the plan was created.
  return rollout.phase === 'new'
    ? all.map((wait) => ({ ...wait, since: rollout.source.created }))
    : all;
}

const ANSWERED = 'the node answers its signal; if it does not answer, check that its agent runs';

const IN_FLIGHT_ENDS: Partial<Record<TargetPhase, string>> = {
  intended: 'the signal is written',
  signalled: 'the work on the node begins',
  working: 'the node reports that it is done, or that it failed',
  verifying: 'the node reports that it is done, or that it failed',
};

function inFlightWaits(assessment: Assessment, stage: Stage): Wait[] {
  const { snapshot, now } = assessment;
  return inState(stage, 'intended').map((target) => {
    const evaluation = assessment.of(stage, target);
    const { phase, reason, ends: decided, gate, until: known, uncordon } = evaluation;
    const facts = factsOf(snapshot, target);
    const { observation, agent } = facts;
    const isOfAgent = phase === 'signalled' && agent !== undefined;
    const ends = decided ?? (isOfAgent ? ANSWERED : IN_FLIGHT_ENDS[phase]);
    // The time that the node reports counts only after the target was signalled.
    const isSignalled = observation.kind !== 'none';
    // The time that the node reports may be in the future, or may be no valid time.
    const latest = now - (facts.watchedMs ?? 0);
    const reported =
      isSignalled && Date.parse(observation.since) <= latest ? observation.since : rfc3339(latest);
    const since = isSignalled ? reported : target.since;
    const deadline = deadlineOf(assessment, target);
    const until = known ?? (deadline === undefined ? undefined : rfc3339(deadline));
    const wait = { target: target.name, gate: gate ?? phase, reason, ends, since };
    return { ...wait, ...defined({ until, uncordon }) };
  });
}

/** Returns one wait for each failed target that is tried again. */
function retryWaits({ snapshot, policy }: Assessment): Wait[] {
  return awaitedRetries(snapshot, policy).map((each) => {
    const { target, dueMs, isOrdered } = each;
    const { name, since } = target;
    const reason = retryReason(each);
    // If `refit retry` cannot try the target again, nothing else can before the plan has ended.
    const isByPeople = snapshot.abilities.retriedBy === undefined;
    const sooner = isByPeople
      ? `; to try it sooner, ${nodeRetriedBy(snapshot.abilities, name)}`
      : '';
    const wait = { target: name, gate: 'retry', reason, since };
    if (isOrdered) return { ...wait, ends: 'the work of the failed attempt has ended' };
    const until = rfc3339(dueMs);
    return { ...wait, ends: `the pause is over, at ${until}${sooner}`, until };
  });
}

function endOfUnread({ code }: Reason): string {
  return code === 'ControlsUnproved'
    ? 'somebody runs `refit pause` or `refit resume` for the plan'
    : 'the record of the plan can be read again';
}

/** Returns why pending targets do not start. Targets with the same reason share one wait. */
function pendingWaits(
  assessment: Assessment,
  stage: Stage | undefined,
  isCounted: IsCounted,
): Wait[] {
  const { rollout } = assessment.snapshot;
  const since = lastProgress(assessment, rollout.stages);
  if (rollout.unread) {
    const ends = endOfUnread(rollout.unread);
    return [{ gate: 'record', reason: rollout.unread, ends, since, ofStage: true }];
  }
  if (assessment.isStopping) return [{ ...stopOf(assessment), since, ofStage: true }];
  if (!stage) return [];
  const { waiting, starting, queued } = unstartedTargets(assessment);
  const gated = waiting.map((each) => ({
    ...each,
    since: waitingSince(assessment, stage, each) ?? since,
  }));
  const shown = queued.filter((target) => isCounted(stage, target));
  return [
    ...groupWaits(stage, gated),
    ...slotWait(assessment, stage, { starting, queued: shown }, since),
    ...laterWaits(rollout.stages, stage, isCounted),
  ];
}

function stopOf({ snapshot, policy }: DecisionContext): Pick<Wait, 'gate' | 'reason' | 'ends'> {
  const { rollout } = snapshot;
  const { controls } = snapshot.plan;
  const { problems, reason } = rollout;
  if (controls.abort !== undefined) {
    const { code, message } = abortReason(controls.abort);
    const reason = because(
      code,
      `${message}; nothing new starts; the leader stops the work where it still can, and the other nodes in progress finish`,
    );
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
      ends: `that attempt is done; to try it sooner, ${nodeRetriedBy(snapshot.abilities, retried.target.name)}`,
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
  assessment: Assessment,
  stage: Stage,
  { starting, queued }: Pick<Unstarted, 'starting' | 'queued'>,
  since: string,
): Wait[] {
  const { snapshot, policy, now } = assessment;
  if (queued.length === 0) return [];
  const wait = { since, ofStage: true } as const;
  const who = `${counted(queued.length, shownRole(stage))} queued`;
  const kept = stage.failedHoldSlots === true ? inState(stage, 'failed') : [];
  const keepers = listed(kept.map(({ name }) => name));
  const retried = `a failed node is tried again: ${nodeRetriedBy(snapshot.abilities)}`;
  if (isHeldByFailures(stage, policy)) {
    const message = `${who}; ${kept.length} failed, more than ${budgetOf(policy)} allows: ${keepers}`;
    const reason = because('FinishingInFlight', message);
    const lifted = `${retried}; or failureBudget of the UpgradePolicy is ${kept.length} or more`;
    return [{ gate: 'failure-budget', reason, ends: lifted, ...wait }];
  }
  const stillAtWork = slots
    .failedInFlightIn(snapshot, now)
    .map(({ target }) => target.name)
    .join(', ');
  const failed =
    stillAtWork === ''
      ? ''
      : `; these failed nodes are still at work and keep a slot: ${stillAtWork}`;
  const keeping = kept.length === 0 ? '' : `; these failed nodes keep a slot: ${keepers}`;
  const reason = because(
    'NoFreeSlot',
    `${who} (${slots.limitOf(stage)} at a time)${failed}${keeping}`,
  );
  const ofFailed = kept.length > 0 ? retried : `the work on ${stillAtWork} has ended`;
  const freed = slotEnd(stage, starting) ?? ofFailed;
  return [
    {
      gate: 'slots',
      reason,
      // Only people read this text, and the waves of a large plan take time, so it is not computed in each turn.
      get ends() {
        return [freed, ...waveEnds(assessment, stage, queued)].join(', and ');
      },
      ...wait,
    },
  ];
}

/** Returns the event that frees a slot of the stage; undefined if no target is in progress or is about to start. */
function slotEnd(stage: Stage, starting: readonly Target[]): string | undefined {
  if (inState(stage, 'intended').length > 0) return 'a node in progress is done';
  if (starting.length === 0) return undefined;
  const names = listed(starting.map(({ name }) => name));
  return starting.length === 1
    ? `${names}, which starts first, is done`
    : `one of the nodes that start first is done: ${names}`;
}

/**
 * Returns what else must happen before any queued target can start, if all of them belong to waves that must settle or be
 * approved first. A free slot alone does not end their wait.
 */
function waveEnds(assessment: Assessment, stage: Stage, queued: readonly Target[]): string[] {
  const ahead = new Map(wavesAhead(assessment, stage).map((each) => [each.wave, each]));
  if (ahead.size === 0) return [];
  const waves = queued.map((target) => waveOf(assessment, stage, target) ?? 0);
  if (!waves.every((wave) => ahead.has(wave))) return [];
  const first = ahead.get(Math.min(...waves));
  if (first === undefined) return [];
  const { wave, settles, needsApproval } = first;
  const approved = needsApproval ? approvalWait(assessment, wave - 1)?.ends : undefined;
  return [
    ...(settles ? [`the waves before wave ${wave} have settled`] : []),
    ...(approved === undefined ? [] : [approved]),
  ];
}

function laterWaits(stages: readonly Stage[], active: Stage, isCounted: IsCounted): Wait[] {
  const several = new Set(stages.map(({ command }) => command)).size > 1;
  const titleOf = (stage: Stage, plural: boolean): string =>
    `${shownRole(stage)}${plural ? 's' : ''}${several ? ` of spec.commands[${stage.command}]` : ''}`;
  return stages.slice(stages.indexOf(active) + 1).flatMap((stage) => {
    const pending = inState(stage, 'pending').filter((target) => isCounted(stage, target));
    const { length, 0: first } = pending;
    if (!first) return [];
    const who = `${length} ${titleOf(stage, length > 1)} ${length > 1 ? 'wait' : 'waits'}`;
    const message = `${who} until the ${titleOf(active, true)} are done`;
    const ends = 'the earlier stage is done';
    const { since } = first;
    return [{ gate: 'stages', reason: because('EarlierStage', message), ends, since }];
  });
}

/** Returns the waits, with one wait for all targets that have the same gate and message. This wait names the first of these targets. */
export function groupWaits(
  stage: Stage,
  waiting: readonly (slots.GatedTarget & { readonly since: string })[],
): Wait[] {
  const alike = Map.groupBy(waiting, ({ gate, reason }) => `${gate} ${reason.message}`);
  return [...alike.values()].flatMap(([first, ...others]) => {
    if (!first) return [];
    const { target, gate, reason, ends, since, until, unapproved, uncordon, after } = first;
    // A waiting controller also blocks the controllers after it.
    const isOfAll = first.ofRollout === true || others.length > 0 || stage.role === 'controller';
    const more = {
      ...(until === undefined ? {} : { until }),
      ...(isOfAll ? { ofStage: true as const } : {}),
      ...(unapproved === undefined ? {} : { unapproved }),
      ...(uncordon === undefined ? {} : { uncordon }),
      ...(after === undefined ? {} : { after }),
    };
    return [{ target: target.name, gate, reason, ends, since, ...more }];
  });
}

/**
 * Returns the latest time at which a target of these stages began or was recorded. If the start of a wait is unknown,
 * this time is used instead.
 */
function lastProgress(
  { snapshot: { targets, rollout }, now }: DecisionContext,
  stages: readonly Stage[],
): string {
  const begun = (target: Target): string => {
    if (target.state !== 'intended') return target.since;
    const { observation } = factsOf({ targets }, target);
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
  const { stage } = assessment;
  const waits = waitsWith(assessment, (of, target) => !isTargetHeld(assessment, of, target));
  const names = new Set(waits.map(({ target }) => target));
  const known = new Set(waits.map(sentenceOf));
  const passedOver = passedOverTargets(assessment);
  const more = stage ? groupWaits(stage, passedOver) : [];
  return {
    waits: [
      ...waits,
      ...more.filter((wait) => !names.has(wait.target) && !known.has(sentenceOf(wait))),
    ],
    probes: passedOver.flatMap(({ probe }) => probe ?? []),
    cordoned: keptCordons(assessment),
  };
}

/**
 * Returns the targets that the scheduler has passed over, with the wait of each. Such a target is still pending,
 * although a target later in the list has started. The state `skipped` has another meaning.
 */
function passedOverTargets(
  assessment: Assessment,
): readonly (slots.GatedTarget & { readonly since: string })[] {
  const { snapshot, stage, isStopping } = assessment;
  const { rollout } = snapshot;
  if (!stage || isFinal(rollout) || rollout.unread || isStopping) return [];
  const last = stage.targets.findLastIndex(({ state }) => state !== 'pending');
  return (
    inState({ targets: stage.targets.slice(0, Math.max(0, last)) }, 'pending')
      .slice(0, MAX_TARGETS)
      .flatMap((target) => slots.chooseTargets(assessment, stage, [target], 1).waiting)
      // The waits of the whole rollout are left out, because `explain` returns them already.
      .filter(({ ofRollout }) => ofRollout !== true)
      .map((refused) => ({
        ...refused,
        since: waitingSince(assessment, stage, refused) ?? refused.target.since,
      }))
  );
}

function sentenceOf({ gate, reason }: Wait): string {
  return `${gate} ${reason.message}`;
}
