/** Owns what the leader does for a target that asks for it: cordon and drain, and the way back. */
import { rfc3339 } from '../util/clock.ts';
import { ownerOf } from './cordons.ts';
import { gateInput, type Look } from './gate-input.ts';
import { evaluate } from './gates/chain.ts';
import { AFTER } from './gates/registry.ts';
import type { DrainView, Errand, NodeView, TargetFacts } from './model.ts';
import type { CampaignPolicy } from './policy/campaign-policy.ts';
import { because } from './reasons.ts';
import { freeSlots } from './schedule/slots.ts';
import type { Progress } from './step-taken.ts';
import { isUnanswered, untilAsked } from './unanswered.ts';

export interface AssistInput extends Look {
  readonly facts: TargetFacts;
}

/** Undefined where there is nothing to do for it. */
export function assist(input: AssistInput): Progress | undefined {
  const { observation, consent, node } = input.facts;
  if (observation.kind !== 'working' || observation.asks === undefined) return undefined;
  if (node && consent === 'unasked') return askConsent(input);
  if (node && isUnanswered(consent)) {
    return { phase: 'working', effect: 'assist', gate: 'consent', ...untilAsked(consent) };
  }
  return observation.asks === 'drain' ? makeWay(input) : letBack(input);
}

function askConsent({ stage, target }: AssistInput): Progress {
  const reason = because('ConsentUnknown', `asking whether ${target.name} lets the leader drain it`);
  return { phase: 'working', effect: 'assist', reason, inquiry: { kind: 'consent', stage, target } };
}

/** Cordon, then drain, then on: each is seen to be so before the next is begun. */
function makeWay(input: AssistInput): Progress {
  const { snapshot, stage, target, facts, policy } = input;
  const { node, drain } = facts;
  if (!node || !policy.drain.enabled) return doing(input, { kind: 'go-on', stage, target, node: node?.name });
  if (!node.unschedulable) {
    const owner = ownerOf(snapshot.campaign, target);
    return doing(input, { kind: 'cordon', stage, target, node: node.name, owner });
  }
  if (!drain) return doing(input, { kind: 'drain', stage, target, node: node.name, options: policy.drain.options });
  if (drain.kind === 'drained') return doing(input, { kind: 'go-on', stage, target, node: node.name });
  return wait(input, node, drain);
}

function doing({ target }: AssistInput, errand: Errand): Progress {
  return { phase: 'working', effect: 'assist', reason: because('Draining', `${target.name} is being drained`), errand };
}

function wait({ target, policy, now }: AssistInput, node: NodeView, drain: DrainView): Progress {
  const { stepDeadlines, drain: rules } = policy;
  const failed = { phase: 'failed', effect: 'fail', next: 'failed' } as const;
  if (drain.kind === 'refused') {
    return { ...failed, reason: because('DrainRefused', `${target.name} cannot be drained: ${drain.reason}`) };
  }
  const { left = 0, blockedBy } = drain.kind === 'draining' ? drain : {};
  const ends = drain.since + (rules.onDeadline === 'wait' ? Number.POSITIVE_INFINITY : stepDeadlines.drain);
  const what = `${left === 1 ? '1 pod is' : `${left} pods are`} left on node ${node.name}`;
  const why = blockedBy === undefined ? what : `${what}: ${blockedBy}`;
  if (now >= ends) {
    const limit = `within ${Math.round(stepDeadlines.drain / 1000)} s`;
    return { ...failed, reason: because('DrainTooLong', `${target.name} was not drained ${limit}: ${why}`) };
  }
  const code = blockedBy === undefined ? 'Draining' : 'DrainBlocked';
  const until = Number.isFinite(ends) ? { until: rfc3339(ends), recheckMs: ends - now } : {};
  return { phase: 'working', effect: 'assist', gate: 'drain', reason: because(code, why), ...until };
}

/** Which cordon goes: ours, which names its owner, or one that an original leader or agent set without a word. */
export function liftOf({ observation }: TargetFacts, { drain }: CampaignPolicy): 'ours' | 'always' {
  return observation.kind === 'working' && observation.ownsCordon === true ? 'always' : drain.uncordon;
}

/** Pods come back only to a node that is well. */
function letBack(input: AssistInput): Progress {
  const { stage, target, facts, policy } = input;
  const verdict = evaluate(AFTER, gateInput(input, freeSlots(stage)));
  if (verdict.kind === 'pass') {
    const reason = because('InFlight', `${target.name} is being let back`);
    const errand = { kind: 'go-on', stage, target, node: facts.node?.name, uncordon: liftOf(facts, policy) } as const;
    return { phase: 'verifying', effect: 'assist', reason, errand };
  }
  const { reason, gate } = verdict;
  if (verdict.kind === 'stop') return { phase: 'failed', effect: 'fail', next: 'failed', reason, gate };
  const { recheckMs, inquiry } = verdict;
  return { phase: 'verifying', effect: 'assist', reason, gate, recheckMs, inquiry };
}
