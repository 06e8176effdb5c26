/** Owns the step of one target: sight, row of the transition table, verifiers, and what is to be recorded of it. */

import { evaluate } from '../gates/chain.ts';
import { type DecisionContext, factsOf, gateInput, type TargetContext } from '../gates/context.ts';
import { AFTER, BEFORE } from '../gates/registry.ts';
import type { TargetPhase } from '../model/decided.ts';
import type { Snapshot, TargetFacts } from '../model/observed.ts';
import { because, isUnasked, type Reason, RUNS_AGAIN } from '../model/reasons.ts';
import type { RecordedState, Stage, Target } from '../model/recorded.ts';
import { type Effect, type ObservedState, type TargetEvaluation, TRANSITIONS } from '../model/transitions.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { freeSlots } from '../schedule/slots.ts';
import { assist } from './cordon-and-drain.ts';
import { isLate } from './deadlines.ts';
import { isSupersededByRetry } from './retry.ts';

/**
 * Milliseconds after which an intent that was not signalled is recorded anew: far more than lies between the two writes,
 * unless a leader went away in between. The deadline of a target begins with its attempt, and an agent must get all of it.
 */
const INTENT_FRESH_MS = 60_000;
/** Milliseconds: intents are named by nothing finer, so none is older before that. */
const SECOND = 1000;
/** Milliseconds: who drains itself may leave that to the leader from now on, and no watch tells. */
const DELEGATION_RECHECK_MS = 10_000;

/** One decision and its targets. Each target is evaluated at most once. */
export class Evaluations implements DecisionContext {
  readonly snapshot: Snapshot;
  readonly policy: RolloutPolicy;
  readonly now: number;
  readonly #known = new Map<Target, TargetEvaluation>();

  constructor(snapshot: Snapshot, policy: RolloutPolicy, now: number) {
    this.snapshot = snapshot;
    this.policy = policy;
    this.now = now;
  }

  of(stage: Stage, target: Target): TargetEvaluation {
    const known = this.#known.get(target);
    if (known) return known;
    const { snapshot, policy, now } = this;
    const evaluation = evaluateTarget({ snapshot, stage, target, policy, now });
    this.#known.set(target, evaluation);
    return evaluation;
  }
}

export function evaluateTarget(context: TargetContext): TargetEvaluation {
  const { snapshot, target, policy, now } = context;
  const facts = factsOf(snapshot, target);
  const late = isLate(target, facts, policy, now);
  const sight = isSupersededByRetry(snapshot, target) ? 'none' : observedStateOf(facts, late);
  const { phase, effect } = TRANSITIONS[target.state][sight];
  switch (effect) {
    case 'adopt':
      return { phase, effect, next: 'intended', reason: restingReason(target, phase, facts) };
    case 'fail':
      return { phase, effect, next: 'failed', reason: failureReason(target, facts, sight) };
    case 'verify':
      return verify(context, late);
    case 'assist':
      return assist({ ...context, facts }) ?? resting(target, phase, facts, 'none');
    case 'signal':
      return intend(context);
    case 'none':
    case 'schedule':
      return {
        ...resting(target, phase, facts, effect),
        ...(drainsItself(facts) ? { recheckMs: DELEGATION_RECHECK_MS } : {}),
      };
  }
}

/** The recorded state of a target for which a gate said stop. */
export function refusedState({ code }: Reason): RecordedState {
  if (code === 'TargetMissing') return 'missing';
  return code === 'PlatformUnsupported' || code === 'PlatformUnknown' ? 'unsupported' : 'failed';
}

function observedStateOf({ exists, observation, drainDelegation }: TargetFacts, late: boolean): ObservedState {
  if (!exists) return 'gone';
  const { kind } = observation;
  if (late && (kind === 'sent' || kind === 'working')) return 'late';
  return kind === 'working' && observation.waitsFor !== undefined && drainDelegation !== false ? 'asking' : kind;
}

function drainsItself({ observation, drainDelegation }: TargetFacts): boolean {
  return observation.kind === 'working' && observation.waitsFor !== undefined && drainDelegation === false;
}

/** The gates are asked again: when they let the target start, it may have been long ago and under another leader. */
function intend(look: TargetContext): TargetEvaluation {
  const { snapshot, stage, target, policy, now } = look;
  const facts = factsOf(snapshot, target);
  const phase = 'intended';
  if (snapshot.controls.abort !== undefined) {
    return { phase, effect: 'none', next: 'pending', reason: because('Aborted', `${target.name} is not begun`) };
  }
  const [problem] = snapshot.rollout.problems;
  if (problem) return { phase, effect: 'none', reason: problem, ends: 'the plan is corrected', gate: 'plan-valid' };
  // The target has a slot of its own already.
  const verdict = evaluate(BEFORE, gateInput(look, freeSlots(stage) + 1));
  if (verdict.kind !== 'pass') {
    const { reason, gate } = verdict;
    if (verdict.kind === 'stop') {
      return { phase, effect: 'none', next: verdict.ofPlan ? 'pending' : refusedState(reason), reason };
    }
    const { ends, recheckMs, probe } = verdict;
    return { phase, effect: 'none', reason, ends, gate, recheckMs, probe };
  }
  const reason = restingReason(target, phase, facts);
  const isOld = now - Date.parse(target.since) >= Math.min(INTENT_FRESH_MS, Math.max(SECOND, policy.targetDeadlineMs));
  return isOld ? { phase, effect: 'none', next: 'intended', reason } : { phase, effect: 'signal', reason };
}

function verify(look: TargetContext, late: boolean): TargetEvaluation {
  const { stage, target } = look;
  const verdict = evaluate(AFTER, gateInput(look, freeSlots(stage)));
  const effect: Effect = 'verify';
  if (verdict.kind === 'pass') {
    return { phase: 'done', effect, next: 'done', reason: because('Completed', `${target.name} is done`) };
  }
  const { reason, gate } = verdict;
  // Whoever only rests is well.
  const isOver = verdict.kind === 'stop' || (late && !isUnasked(reason) && reason.code !== 'Resting');
  if (isOver) return { phase: 'failed', effect, next: 'failed', reason };
  const { ends, recheckMs, probe, until } = verdict;
  return { phase: 'verifying', effect, reason, ends, gate, recheckMs, probe, until };
}

function resting(target: Target, phase: TargetPhase, facts: TargetFacts, effect: Effect): TargetEvaluation {
  return { phase, effect, reason: restingReason(target, phase, facts) };
}

function restingReason(target: Target, phase: TargetPhase, { observation }: TargetFacts): Reason {
  if (phase === 'intended') return because('Intended', `${target.name} is about to be signalled`);
  if (phase === 'signalled') return because('Signalled', `${target.name} is signalled; its agent has not answered yet`);
  const step = observation.kind === 'working' ? observation.step : phase;
  return because('InFlight', `${target.name} is at ${step}`);
}

function failureReason(target: Target, { observation, drainDelegation }: TargetFacts, sight: ObservedState): Reason {
  if (sight === 'gone') return because('TargetGone', `${target.name} disappeared while it was in flight`);
  if (observation.kind === 'failed') {
    const again = observation.report?.rolledBack === true ? ` (${RUNS_AGAIN})` : '';
    const code = observation.late === 'drain' ? 'DrainTooLong' : 'TargetFailed';
    return because(code, `${target.name}: ${observation.message}${again}`);
  }
  if (observation.kind === 'working' && observation.part === 'drain' && drainDelegation === false) {
    return because('DrainTooLong', `${target.name}, which drains itself, was not drained within its deadline`);
  }
  const step = observation.kind === 'working' ? ` at ${observation.step}` : '';
  return because('DeadlineExceeded', `${target.name} did not report within its deadline${step}`);
}
