/** The decision: one pure function, which the controller, `refit status`, the tests and the explorer all run. */
import { onceForEach } from '../../util/memo.ts';
import { ownMember } from '../../util/own-member.ts';
import { advance } from '../assess/advance.ts';
import { isStopping } from '../assess/budget.ts';
import { type Evaluations, evaluationsFor, isAtRest } from '../assess/evaluate-target.ts';
import { momentOf } from '../assess/retry.ts';
import { explain } from '../explain/explain.ts';
import { factsOf } from '../gates/types.ts';
import type { Decision, NodeAction, Signalling, Snapshot } from '../model/decision.ts';
import {
  activeStage,
  inState,
  isFinal,
  ownerOf,
  type Stage,
  type Target,
} from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { candidatesIn, nextIn, startableAhead } from '../schedule/ahead.ts';
import { openSlots } from '../schedule/slots.ts';
import { nodeActionsOf } from './choose-node-actions.ts';

/** `now` in milliseconds since the Unix epoch. The same input always gives the same decision. */
export function decide(snapshot: Snapshot, policy: RolloutPolicy, now: number): Decision {
  return decideOn(evaluationsFor(snapshot, policy, now));
}

export function decideOn(evaluations: Evaluations): Decision {
  const settled = settle(evaluations);
  if (settled === evaluations) return { ...explain(settled), ...recordedWork(settled) };
  return { ...explain(settled), record: settled.snapshot.rollout, signals: [], nodeActions: [] };
}

export function recordedWork(evaluations: Evaluations): Pick<Decision, 'signals' | 'nodeActions'> {
  const { snapshot } = evaluations;
  const isAllowed = ({ target }: NodeAction) => factsOf(snapshot, target).refusal === undefined;
  return {
    signals: signalsOf(evaluations),
    nodeActions: nodeActionsOf(evaluations).filter(isAllowed),
  };
}

/** Advances until nothing changes, so that one write records all: a target done, and the next ones intended. */
function settle(evaluations: Evaluations): Evaluations {
  const { snapshot, policy, now } = evaluations;
  const rollout = advance(evaluations);
  return rollout === snapshot.rollout
    ? evaluations
    : settle(evaluationsFor({ ...snapshot, rollout }, policy, now));
}

export function signalsOf(evaluations: Evaluations): Signalling[] {
  const { snapshot } = evaluations;
  const stage = activeStage(snapshot.rollout);
  if (!stage || isFinal(snapshot.rollout) || snapshot.rollout.unread) return [];
  const due = inState(stage, 'intended').filter(
    (target) => evaluations.of(stage, target).effect === 'signal',
  );
  const { started } = startedAhead(evaluations);
  return [...due, ...started].flatMap((target) => signalFor(evaluations, stage, target));
}

/** True if more targets can start than are recorded ahead, or if all of the stage are done: nothing more comes for that record. */
export function needsRecord(evaluations: Evaluations): boolean {
  return startedAhead(evaluations).isShort || endsStage(evaluations);
}

function endsStage(evaluations: Evaluations): boolean {
  const stage = activeStage(evaluations.snapshot.rollout);
  if (!stage) return false;
  const isDone = (target: Target): boolean => evaluations.of(stage, target).next === 'done';
  return inState(stage, 'pending').length === 0 && inState(stage, 'intended').every(isDone);
}

/** Those that are recorded ahead take the place of targets that are done, unless these must be uncordoned first. */
const startedAhead = onceForEach(
  (evaluations: Evaluations): { started: Target[]; isShort: boolean } => {
    const { snapshot, policy, now } = evaluations;
    const stage = activeStage(snapshot.rollout);
    if (!stage?.next?.length || isStopping(snapshot, policy))
      return { started: [], isShort: false };
    const begun = new Set(nextIn(stage).filter((target) => !isAtRest(snapshot, target)));
    // What has started is not always recorded yet.
    const started = [...begun].map((target): Target => ({ ...target, state: 'intended' }));
    const recorded = inState(stage, 'intended').flatMap((target): Target[] => {
      const { next } = evaluations.of(stage, target);
      if (next === 'done' && factsOf(snapshot, target).node?.unschedulable !== true) return [];
      return next === 'failed' ? [{ ...target, state: next }] : [target];
    });
    const slots = openSlots(evaluations, {
      ...stage,
      targets: [...inState(stage, 'failed'), ...started, ...recorded],
    });
    const since = (target: Target): string => momentOf(snapshot, target, now);
    const startable = startableAhead(evaluations, stage, slots);
    const isShort = startable.length < Math.min(slots, candidatesIn(stage).length - begun.size);
    return {
      started: startable.map((each) => ({ ...each, state: 'intended', since: since(each) })),
      isShort,
    };
  },
);

function signalFor({ snapshot, policy }: Evaluations, stage: Stage, target: Target): Signalling[] {
  const { node, platform = '' } = factsOf(snapshot, target);
  const owner = ownerOf(snapshot.rollout, target);
  const found = node?.unschedulable === true && node.cordonOwner === undefined;
  const cordon = { cordonFor: owner, ...(found ? { foundCordoned: true as const } : {}) };
  const agent = node && policy.drain.enabled ? { ...policy.agent, ...cordon } : policy.agent;
  if (!stage.payloads) return [{ stage, target, agent }];
  const payload = ownMember(stage.payloads, platform);
  return payload ? [{ stage, target, payload, agent }] : [];
}
