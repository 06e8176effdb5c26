/** Evaluates one target: its observation, its deadlines, its row in the transition table, its gates, and the state to record. */

import { cordonOwner, pendingOwner } from '../../drain/cordon-marks.ts';
import { claimOn } from '../../signal/at-work.ts';
import { onceForEach } from '../../util/memo.ts';
import { domainAvailable } from '../gates/domain-available.ts';
import { isHolding } from '../gates/held-targets.ts';
import { nodesAvailable } from '../gates/nodes-available.ts';
import {
  AFTER_TARGET,
  BEFORE_SIGNAL,
  BEFORE_TARGET,
  evaluate,
  type Refusal,
} from '../gates/registry.ts';
import {
  censusOfIntent,
  factsOf,
  type GateInput,
  gateInput,
  type TargetContext,
} from '../gates/types.ts';
import { answerOf } from '../model/asked.ts';
import type { TargetFacts } from '../model/facts.ts';
import { because, isUnasked, type Reason, type ReasonCode } from '../model/reasons.ts';
import { isSettled, type RecordedState, SECOND, type Target, targetsIn } from '../model/rollout.ts';
import type { TargetPhase } from '../model/shown-phases.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { hooksMs } from '../policy/rollout-policy.ts';
import { freeSlots } from '../schedule/slots.ts';
import { isUnsettled } from './budget.ts';
import { awaitedByTarget } from './choose-drain-action.ts';
import { isUnclaimed } from './claims.ts';
import type { Effect, ObservedState, Row, TargetEvaluation } from './evaluation.ts';
import { failureReason, lateReason } from './failure-reason.ts';
import { isSupersededByRetry } from './retry.ts';
import { isLate } from './target-deadlines.ts';

/**
 * If an intent has not been signalled after this number of milliseconds, it is recorded again. The deadline of the
 * target starts with the intent, so an old intent would leave the agent too little time. The time that hooks may take
 * is added, because a new intent is a new attempt, and its hooks would run again.
 */
const INTENT_FRESH_MS = 60_000;
/**
 * If a node drains itself, Refit asks it again after this number of milliseconds whether it delegates its drain. The
 * node may start to delegate its drain at any time, and no watch reports that.
 */
const DELEGATION_RECHECK_MS = 10_000;

const SETTLED = (phase: TargetPhase): Readonly<Record<ObservedState, Row>> => {
  const row: Row = { phase, effect: 'none' };
  return {
    none: row,
    sent: row,
    working: row,
    asking: row,
    succeeded: row,
    failed: row,
    gone: row,
    late: row,
  };
};

/** The transition table of a target: from its recorded state and its observed state to its phase and the effect. */
const TRANSITIONS: Readonly<Record<RecordedState, Readonly<Record<ObservedState, Row>>>> = {
  pending: {
    none: { phase: 'pending', effect: 'schedule' },
    sent: { phase: 'signalled', effect: 'adopt' },
    working: { phase: 'working', effect: 'adopt' },
    asking: { phase: 'working', effect: 'adopt' },
    succeeded: { phase: 'verifying', effect: 'adopt' },
    failed: { phase: 'failed', effect: 'fail' },
    gone: { phase: 'pending', effect: 'schedule' },
    // The target has missed a deadline, but the missed deadline counts only when the attempt is recorded. So the
    // attempt is adopted first.
    late: { phase: 'working', effect: 'adopt' },
  },
  intended: {
    // `intend()` may also make the target wait, free its slot (`pending`), or refuse the target.
    none: { phase: 'intended', effect: 'signal' },
    sent: { phase: 'signalled', effect: 'none' },
    working: { phase: 'working', effect: 'none' },
    asking: { phase: 'working', effect: 'node-action' },
    succeeded: { phase: 'verifying', effect: 'verify' },
    failed: { phase: 'failed', effect: 'fail' },
    gone: { phase: 'failed', effect: 'fail' },
    late: { phase: 'failed', effect: 'fail' },
  },
  done: SETTLED('done'),
  failed: SETTLED('failed'),
  missing: SETTLED('missing'),
  unsupported: SETTLED('unsupported'),
  skipped: SETTLED('skipped'),
};

/** Everything that the evaluation of one target depends on. */
export interface EvaluationContext extends TargetContext {
  /** True if nothing new may start in the rollout. */
  readonly isStopping: boolean;
}

/** Evaluates the target. */
export function evaluateTarget(context: EvaluationContext): TargetEvaluation {
  return withSkip(evaluation(context), context);
}

/**
 * If a drain of a worker took too long, the target is skipped instead of failed. This applies only if the policy skips
 * such nodes, and if the record can contain skipped targets. A controller still fails, because no worker may start
 * before all controllers.
 */
function withSkip(evaluation: TargetEvaluation, context: TargetContext): TargetEvaluation {
  const { snapshot, stage, policy } = context;
  const isTooLong = evaluation.next === 'failed' && evaluation.reason.code === 'DrainTooLong';
  const isAllowed = policy.drain.onDeadline === 'skipNode' && snapshot.abilities.canSkip;
  const maySkip = isAllowed && stage.role === 'worker';
  return isTooLong && maySkip ? { ...evaluation, phase: 'skipped', next: 'skipped' } : evaluation;
}

/**
 * Returns true if Refit does nothing for the target at this moment. Its phase is the recorded state until a gate lets
 * the target start, or until a person retries it.
 */
export function isAtRest({ targets }: Pick<Snapshot, 'targets'>, target: Target): boolean {
  if (target.state !== 'pending') return isSettled(target);
  if (targets.observable?.has(target.name) === false) return true;
  const { exists, observation } = factsOf({ targets }, target);
  return exists && observation.kind === 'none';
}

/**
 * Returns each stage with the targets that must be checked in a turn. A target that is done, or that is pending without
 * work, is omitted if its node has no cordon or taint of Refit.
 */
export const touchedIn = onceForEach(
  ({ rollout, targets: { observable }, cluster: { fleet = [] } }: Snapshot) => {
    const marked = fleet.filter((node) => (cordonOwner(node) ?? pendingOwner(node)) !== undefined);
    const names = new Set(marked.map(({ metadata }) => metadata.name));
    const isAsBefore = ({ state, name }: Target): boolean =>
      state === 'done' || (state === 'pending' && observable?.has(name) === false);
    const isTouched = (target: Target): boolean =>
      !observable || names.has(target.name) || !isAsBefore(target);
    return rollout.stages.map((stage) => ({ stage, targets: stage.targets.filter(isTouched) }));
  },
);

function evaluation(context: EvaluationContext): TargetEvaluation {
  const { snapshot, target, policy, now } = context;
  const facts = factsOf(snapshot, target);
  const late = isLate(target, facts, policy, now);
  const observed = isSupersededByRetry(snapshot, target) ? 'none' : observedStateOf(facts, late);
  const { phase, effect } = TRANSITIONS[target.state][observed];
  switch (effect) {
    case 'adopt':
      return { phase, effect, next: 'intended', reason: restingReason(target, phase, facts) };
    case 'fail': {
      const awaited = observed === 'late' ? awaitedByTarget(context, facts) : undefined;
      // The reason of the failure depends on the answer to this probe, which is asked in the same reconcile.
      if (awaited?.probe !== undefined) return awaited;
      const reason =
        observed === 'late'
          ? lateReason(target, facts, awaited)
          : failureReason(target, facts, observed);
      if (late || !holdsSlot(context)) return { phase, effect, next: 'failed', reason };
      return {
        phase: 'working',
        effect: 'none',
        reason,
        ends: `${target.name} is not Ready, or its deadline passes`,
      };
    }
    case 'verify':
      return verify(context, phase, late);
    case 'node-action':
      return (
        awaitedByTarget(context, facts) ?? {
          phase,
          effect: 'none',
          reason: restingReason(target, phase, facts),
        }
      );
    case 'signal':
      return intend(context);
    case 'none':
    case 'schedule': {
      const { observation, drainDelegation } = facts;
      const isAsking = observation.kind === 'working' && observation.waitsFor !== undefined;
      const recheck =
        isAsking && answerOf(drainDelegation) === false ? { recheckMs: DELEGATION_RECHECK_MS } : {};
      return { phase, effect, reason: restingReason(target, phase, facts), ...recheck };
    }
  }
}

/**
 * Returns true if the failed target must keep its slot, because its service may still restart, and another node could restart at the same
 * time.
 */
function holdsSlot({ snapshot, target, isStopping }: EvaluationContext): boolean {
  if (!isUnsettled(snapshot, target) || isStopping) return false;
  return targetsIn(snapshot.rollout, 'pending').length > 0;
}

/** Returns the state to record for a target that a gate stops for this reason. */
export function refusedState({ code }: Reason): RecordedState {
  if (code === 'TargetMissing') return 'missing';
  return code === 'PlatformUnsupported' || code === 'PlatformUnknown' ? 'unsupported' : 'failed';
}

function observedStateOf(
  { exists, observation, drainDelegation }: TargetFacts,
  late: boolean,
): ObservedState {
  if (!exists) return 'gone';
  const { kind } = observation;
  if (late && (kind === 'sent' || kind === 'working')) return 'late';
  return kind === 'working' &&
    observation.waitsFor !== undefined &&
    answerOf(drainDelegation) !== false
    ? 'asking'
    : kind;
}

/**
 * Evaluates the gates again for an intended target, because the intent may be old, and another leader may have recorded it. The target is
 * then signalled, waits, gives up its slot (`pending`), or is refused.
 */
function intend(context: TargetContext): TargetEvaluation {
  const { snapshot, stage, target, policy, now } = context;
  const facts = factsOf(snapshot, target);
  const phase = 'intended';
  const isBegun = facts.observation.kind === 'none' && facts.observation.begun === true;
  if (!isBegun && snapshot.plan.controls.abort !== undefined)
    return {
      phase,
      effect: 'none',
      next: 'pending',
      reason: because('Aborted', `${target.name} was not started`),
    };
  const [problem] = snapshot.rollout.problems;
  if (problem)
    return {
      phase,
      effect: 'none',
      reason: problem,
      ends: 'the plan is corrected',
      gate: 'plan-valid',
    };
  // One slot is added, because the target holds a slot already.
  const input = gateInput(context, freeSlots(stage) + 1, censusOfIntent(context));
  // Hooks and locks belong to an attempt, so they come after its record.
  const gates = target.lacksAttempt ? BEFORE_TARGET : BEFORE_SIGNAL;
  const verdict = evaluate(isBegun ? [] : gates, input);
  if (verdict.kind !== 'pass') {
    const { reason, gate } = verdict;
    if (verdict.kind === 'stop')
      return {
        phase,
        effect: 'none',
        next: verdict.ofPlan ? 'pending' : refusedState(reason),
        reason,
      };
    // The claim makes no difference for a cordoned node, because such a node counts as unavailable in any case. The
    // cordon may come from a deleted Job.
    const isClaimed =
      facts.node?.unschedulable === false && facts.node.claim === (snapshot.plan.claim ?? '');
    const { ends, until, recheckMs = isClaimed ? INTENT_FRESH_MS : undefined } = verdict;
    const { probe, hookRun, uncordon } = verdict;
    // Other plans wait because of the claim of this target. So if the gates do not let the target start, its intent and
    // its claim are removed, except in the cases below.
    const isKept =
      gate === 'nodes-available' || gate === 'domain-available'
        ? !mustGiveWay(input, snapshot)
        : verdict.keepsIntent === true || probe !== undefined || hookRun !== undefined;
    // If people hold a target, or another tool works on its node, the plan continues without the target. So such a
    // target must not occupy a slot.
    const isAside = isHolding(gate) || gate === 'others-at-work';
    const isGivenBack = (isClaimed && !isKept) || isAside;
    const back = isGivenBack ? { next: 'pending' as const } : {};
    const told = { reason, ends, gate, until, uncordon };
    return { phase, effect: 'none', ...back, ...told, recheckMs, probe, hookRun };
  }
  const reason = restingReason(target, phase, facts);
  if (isUnclaimed(snapshot, facts, policy))
    return { phase, effect: 'none', reason, recheckMs: SECOND };
  const freshMs =
    Math.min(INTENT_FRESH_MS, Math.max(SECOND, policy.targetDeadlineMs)) +
    hooksMs(policy, 'beforeDrain') +
    (policy.drain.unheld === 'withoutDrain' ? hooksMs(policy, 'beforeRestart') : 0);
  const isFresh = !target.lacksAttempt && now - Date.parse(target.since) < freshMs;
  return isFresh
    ? { phase, effect: 'signal', reason }
    : { phase, effect: 'none', next: 'intended', reason };
}

/**
 * Returns true if this plan must remove its claim in favor of other plans, because too many nodes would be unavailable.
 * Plans with a claim that is later in alphabetical order remove their claims before this plan. So their claims are not
 * counted: if the limit is exceeded without them, this plan removes its claim at once. Otherwise the later plans get
 * time to remove their claims first, one minute for each plan. If the limit is still exceeded after that time, this
 * plan removes its claim as well.
 */
function mustGiveWay(
  { census, ...input }: GateInput,
  { plan: { claim = '' }, cluster: { fleet = [] } }: Snapshot,
): boolean {
  const later = fleet.filter((node) => (claimOn(node) ?? claim) > claim);
  if ((input.facts.followedMs ?? 0) > INTENT_FRESH_MS * new Set(later.map(claimOn)).size)
    return true;
  const busy = census?.busy
    .difference(new Set(later.map(({ metadata }) => metadata.name)))
    .union(census.unavailable);
  const alone = { ...input, census: census && busy && { ...census, busy } };
  return [nodesAvailable, domainAvailable].some((gate) => gate.evaluate(alone).kind === 'wait');
}

function verify(context: TargetContext, phase: TargetPhase, late: boolean): TargetEvaluation {
  const { stage, target } = context;
  const verdict = evaluate(AFTER_TARGET, gateInput(context, freeSlots(stage)));
  const effect: Effect = 'verify';
  if (verdict.kind === 'pass') {
    const reason = because('Completed', `${target.name} is done`);
    return { phase, effect, next: 'done', reason, ends: 'the leader records it' };
  }
  const { reason, gate } = verdict;
  const isOver =
    verdict.kind === 'stop' ||
    isUnreadyTooLong(context, reason) ||
    isUnhealthyTooLong(context, verdict) ||
    isVersionTooLate(context, reason) ||
    (isOverdue(context, late) && !isUnasked(reason) && !HEALTHY_SO_FAR.includes(reason.code));
  if (isOver) return { phase: 'failed', effect, next: 'failed', reason };
  const { ends, recheckMs, probe, until, hookRun } = verdict;
  return { phase, effect, reason, ends, gate, recheckMs, probe, until, hookRun };
}

/** A target that waits for one of these reasons has succeeded and is healthy itself. So it cannot miss its deadline. */
const HEALTHY_SO_FAR: readonly ReasonCode[] = [
  'Resting',
  'HealthCheckFailing',
  'HealthUnknown',
  'HookRunning',
];

/** Returns true if the target is late and the rest after its work is over, because the rest counts against no deadline. */
function isOverdue({ snapshot, stage, target, policy }: TargetContext, late: boolean): boolean {
  const { restMs = 0 } = stage;
  const { watchedMs = 0 } = factsOf(snapshot, target);
  return late && (restMs === 0 || watchedMs >= restMs + policy.stepDeadlines.ready);
}

/** Returns true if the kubelet has not reported the version of the plan within the deadline `ready`. */
function isVersionTooLate({ snapshot, target, policy }: TargetContext, { code }: Reason): boolean {
  const { watchedMs = 0 } = factsOf(snapshot, target);
  return code === 'VersionNotReached' && watchedMs >= policy.stepDeadlines.ready;
}

/** Returns true if a health check has failed continuously for at least the duration of the deadline `ready`. */
function isUnhealthyTooLong({ snapshot, target, policy, now }: TargetContext, verdict: Refusal) {
  const { watchedMs = 0 } = factsOf(snapshot, target);
  if (verdict.kind !== 'wait' || verdict.reason.code !== 'HealthCheckFailing') return false;
  // If a verdict has `until`, its check passes, but has not passed for long enough yet.
  if (verdict.since === undefined || verdict.until !== undefined) return false;
  return Math.min(now - Date.parse(verdict.since), watchedMs) >= policy.stepDeadlines.ready;
}

/**
 * Returns true if the node has not been Ready for a continuous period that is at least as long as the deadline `ready`.
 */
function isUnreadyTooLong({ snapshot, target, policy, now }: TargetContext, { code }: Reason) {
  const { readySince = '', watchedMs = 0 } = factsOf(snapshot, target);
  if (code !== 'NodeNotReady' || Number.isNaN(Date.parse(readySince))) return false;
  // The clock of the node may be wrong. So the period is at most the time for which this leader has watched the target.
  const unreadyMs = Math.min(now - Date.parse(readySince), watchedMs);
  return unreadyMs >= policy.stepDeadlines.ready;
}

function restingReason(target: Target, phase: TargetPhase, facts: TargetFacts): Reason {
  const { observation, agent } = facts;
  if (phase === 'intended') return because('Intended', `${target.name} is about to be signalled`);
  if (phase === 'signalled')
    return because('Signalled', `${target.name} is signalled; ${unanswered(agent)}`);
  const { step, stalled } = observation.kind === 'working' ? observation : { step: phase };
  if (stalled !== undefined) return because('Stalled', `${target.name} is at ${step}: ${stalled}`);
  return because('InFlight', `${target.name} is at ${step}`);
}

/** Says that a signal has no answer yet. In some dialects, no agent answers signals, because a Job or the leader does the work. */
function unanswered(agent: TargetFacts['agent']): string {
  return agent === undefined ? 'its work has not begun yet' : 'its agent has not answered yet';
}
