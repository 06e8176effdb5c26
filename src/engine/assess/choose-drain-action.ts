/** Chooses what the leader does for a target that delegates its drain: cordon and drain, later uncordon. */
import { CORDONED_BUDGET_ENDS } from '../../drain/budgets.ts';
import { type DrainProgress, describeProgress } from '../../drain/drain-node.ts';
import type { DrainOptions } from '../../drain/pods.ts';
import type { DrainState } from '../../drain/running-drains.ts';
import { rfc3339 } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import { sameJson } from '../../util/json.ts';
import { AFTER_TARGET, BEFORE_NODE_ACTION, BEFORE_WORK, evaluate } from '../gates/registry.ts';
import { gateInput, type TargetContext } from '../gates/types.ts';
import { answerOf, untilAsked } from '../model/asked.ts';
import type { NodeAction } from '../model/decision.ts';
import type { NodeView, TargetFacts } from '../model/facts.ts';
import { because, type Reason } from '../model/reasons.ts';
import { ownerOf } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { freeSlots } from '../schedule/slots.ts';
import type { TargetEvaluation } from './evaluation.ts';

/** Returns what the leader does for the target, or waits for; undefined if the target does not wait for the leader. */
export function awaitedByTarget(
  context: TargetContext,
  facts: TargetFacts,
): TargetEvaluation | undefined {
  const chosen =
    answerOf(facts.drainDelegation) === false ? undefined : chooseDrainAction(context, facts);
  return chosen && withRefusal(chosen, context, facts);
}

/** If the API server refused a write for the target, the action of the leader waits, and the reason says that. */
function withRefusal(
  evaluation: TargetEvaluation,
  context: TargetContext,
  { refusal }: TargetFacts,
): TargetEvaluation {
  if (!evaluation.nodeAction || !refusal) return evaluation;
  const verdict = evaluate(BEFORE_NODE_ACTION, gateInput(context, 0));
  return verdict.kind === 'wait'
    ? { ...evaluation, gate: verdict.gate, reason: verdict.reason, ends: verdict.ends }
    : evaluation;
}

/** Returns what the leader must do for the target; undefined if the target does not wait for the leader. */
function chooseDrainAction(
  context: TargetContext,
  facts: TargetFacts,
): TargetEvaluation | undefined {
  const { observation, drainDelegation, node } = facts;
  if (observation.kind !== 'working' || observation.waitsFor === undefined) return undefined;
  if (node && drainDelegation.kind === 'unasked') {
    const { stage, target } = context;
    const reason = because(
      'DrainDelegationUnknown',
      `asking whether ${target.name} delegates its drain`,
    );
    return {
      phase: 'working',
      effect: 'node-action',
      reason,
      probe: { kind: 'drain-delegation', stage, target },
    };
  }
  if (node && drainDelegation.kind === 'unanswered')
    return {
      phase: 'working',
      effect: 'node-action',
      gate: 'drain-delegation',
      ...untilAsked(drainDelegation),
    };
  return observation.waitsFor === 'drain'
    ? cordonAndDrain(context, facts)
    : uncordonNode(context, facts);
}

/** Chooses between cordon, drain and acknowledge. Each action starts once the objects show that the action before it is done. */
function cordonAndDrain(context: TargetContext, { node, drain }: TargetFacts): TargetEvaluation {
  const { snapshot, stage, target, policy } = context;
  const { name } = target;
  if (policy.heldBy !== undefined) {
    const reason = because('Paused', `${policy.heldBy} is paused: ${name} is not drained`);
    return {
      phase: 'working',
      effect: 'node-action',
      gate: 'not-paused',
      reason,
      ends: `${policy.heldBy} is resumed`,
    };
  }
  if (!node) return goOn(context, node, because('InFlight', `${name} has no Node to drain`));
  if (!policy.drain.enabled) {
    const message = `${name} is not drained: spec.drain.enabled of the policy is false`;
    return goOn(context, node, because('InFlight', message));
  }
  const excludes = policy.drain.excludes === true && policy.drain.cordonOnly !== true;
  // If the agent has cordoned the node for the leader, the node lacks the label that excludes it from load balancers.
  const isExcluded = !excludes || node.exclusion !== undefined || node.cordonOwner === undefined;
  if (!node.unschedulable || !isExcluded) {
    const owner = ownerOf(snapshot.rollout, target);
    const at = { kind: 'cordon', stage, target, node: node.name, owner } as const;
    const cordon = excludes ? { ...at, excludes } : at;
    const [what, ends] = node.unschedulable
      ? ['exclude it from external load balancers', 'the leader has excluded the node from them']
      : ['cordon it', 'the leader has cordoned the node'];
    return doing(because('Draining', awaitsLeader(name, what)), cordon, ends);
  }
  if (policy.drain.cordonOnly === true)
    return goOn(context, node, because('InFlight', `${name} is cordoned`));
  const options = optionsFor(node, policy);
  if (!drain || (drain.options && !sameJson(drain.options, options))) {
    const begin = { kind: 'drain', stage, target, node: node.name, options } as const;
    return doing(because('Draining', awaitsLeader(name, 'drain it')), begin, DRAINED);
  }
  if (drain.kind === 'drained')
    return goOn(context, node, because('InFlight', `${name} is drained`));
  return wait(context, node, drain);
}

/**
 * Evaluates a target whose node is drained. When the hooks between the drain and the work have succeeded, the leader
 * allows the work on the node to continue.
 */
function goOn(
  context: TargetContext,
  node: NodeView | undefined,
  reason: Reason,
): TargetEvaluation {
  const { stage, target } = context;
  const verdict = evaluate(BEFORE_WORK, gateInput(context, freeSlots(stage)));
  if (verdict.kind === 'pass')
    return doing(
      reason,
      { kind: 'acknowledge', stage, target, node: node?.name },
      'the leader lets the node continue',
    );
  const { gate } = verdict;
  if (verdict.kind === 'stop')
    return { phase: 'failed', effect: 'fail', next: 'failed', reason: verdict.reason, gate };
  const { ends, until, hookRun } = verdict;
  return {
    phase: 'working',
    effect: 'node-action',
    reason: verdict.reason,
    ends,
    gate,
    until,
    hookRun,
  };
}

/** Returns the options of the drain. The drain waits for load balancers only if Refit itself excluded the node from them. */
function optionsFor({ exclusion }: NodeView, { drain: { options } }: RolloutPolicy): DrainOptions {
  const { graceMs, ...others } = options;
  return graceMs === undefined || exclusion === 'ours' ? options : others;
}

/** Returns the evaluation of a target for which the leader must do something. `ends` also holds while no leader runs. */
function doing(reason: Reason, nodeAction: NodeAction, ends: string): TargetEvaluation {
  return { phase: 'working', effect: 'node-action', reason, nodeAction, ends };
}

/** Says what the leader does next. The sentence is also true while no leader runs. */
function awaitsLeader(name: string, what: string): string {
  return `${name} waits for the leader to ${what}`;
}

const DRAINED = 'the leader has drained the node';

function wait(context: TargetContext, node: NodeView, drain: DrainState): TargetEvaluation {
  const { target, policy, now } = context;
  const { stepDeadlines, drain: rules } = policy;
  const failed = { phase: 'failed', effect: 'fail', next: 'failed' } as const;
  if (drain.kind === 'failed')
    return {
      ...failed,
      reason: because('DrainRefused', `${target.name} cannot be drained: ${drain.reason}`),
    };
  const progress = drain.kind === 'draining' ? drain : { left: 0 };
  const { left, blockedBy, detaching }: DrainProgress = progress;
  const deadline =
    drain.since + (rules.onDeadline === 'wait' ? Number.POSITIVE_INFINITY : stepDeadlines.drain);
  const isKnown = left > 0 || detaching !== undefined;
  const why = isKnown ? describeProgress(progress, node.name) : uncounted(node, blockedBy);
  if (now >= deadline) {
    const message = `${target.name} was not drained within ${formatDuration(stepDeadlines.drain)}: ${why}`;
    if (rules.onDeadline !== 'proceed')
      return { ...failed, reason: because('DrainTooLong', message) };
    return goOn(context, node, because('InFlight', message));
  }
  const code = blockedBy === undefined ? 'Draining' : 'DrainBlocked';
  const until = Number.isFinite(deadline)
    ? { until: rfc3339(deadline), recheckMs: deadline - now }
    : {};
  const isBudget = blockedBy?.includes('PodDisruptionBudget ') === true;
  const gone = `the pods are gone (kubectl get pods -A --field-selector spec.nodeName=${node.name} shows them)`;
  const podsEnd = isBudget ? CORDONED_BUDGET_ENDS : gone;
  return {
    phase: 'working',
    effect: 'node-action',
    gate: 'drain',
    reason: because(code, why),
    ends: detaching === undefined ? podsEnd : VOLUMES_END,
    ...until,
  };
}

const VOLUMES_END = 'the volumes are detached (kubectl get volumeattachments shows them)';

function uncounted({ name }: NodeView, blockedBy: string | undefined): string {
  const what = `Refit could not list the pods of node ${name} yet`;
  return blockedBy === undefined ? what : `${what}: ${blockedBy}`;
}

/**
 * Returns which cordon to remove: `ours` for a cordon that names Refit as its owner, `always` for any cordon. If
 * the leader or the agent of another system has cordoned the node, the cordon names no owner, so any cordon is removed.
 */
export function uncordonOf(
  { observation }: TargetFacts,
  { drain }: RolloutPolicy,
): 'ours' | 'always' {
  return observation.kind === 'working' && observation.ownsCordon === true
    ? 'always'
    : drain.uncordon;
}

/**
 * Evaluates a target that waits for its uncordon. The node is uncordoned only after the verifiers pass, because pods
 * may be scheduled to the node only then. A node whose work has ended is uncordoned at once.
 */
function uncordonNode(context: TargetContext, facts: TargetFacts): TargetEvaluation {
  const { stage, target, policy } = context;
  const { observation } = facts;
  const hasEnded = observation.kind === 'working' && observation.hasEnded === true;
  const gates = hasEnded ? BEFORE_NODE_ACTION : AFTER_TARGET;
  const verdict = evaluate(gates, gateInput(context, freeSlots(stage)));
  if (verdict.kind === 'pass') {
    const what = facts.node ? 'uncordon it' : 'let it continue';
    const ends = facts.node ? 'the leader uncordons the node' : 'the leader lets the node continue';
    const reason = because('InFlight', awaitsLeader(target.name, what));
    const uncordon = uncordonOf(facts, policy);
    const nodeAction = {
      kind: 'acknowledge',
      stage,
      target,
      node: facts.node?.name,
      uncordon,
    } as const;
    return { phase: 'verifying', effect: 'node-action', reason, nodeAction, ends };
  }
  const { reason, gate } = verdict;
  if (verdict.kind === 'stop')
    return { phase: 'failed', effect: 'fail', next: 'failed', reason, gate };
  const { ends, recheckMs, probe, until } = verdict;
  return { phase: 'verifying', effect: 'node-action', reason, ends, gate, recheckMs, probe, until };
}
