/**
 * Owns the decision: one pure function from what is recorded and seen to what is recorded and signalled next. The same
 * function runs in the controller, in `refit status`, in the tests and in the explorer; there is no second copy of a rule.
 */

import { factsOf } from '../gates/context.ts';
import { ownerOf } from '../model/cordon-owners.ts';
import type { Decision, Signalling } from '../model/decided.ts';
import type { Snapshot } from '../model/observed.ts';
import { isFinal } from '../model/recorded.ts';
import { activeStage } from '../model/stages.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { advance } from './advance.ts';
import { Evaluations } from './evaluate-target.ts';
import { explain } from './explain.ts';
import { nodeActionsOf } from './node-actions.ts';

/** `now` in milliseconds since the Unix epoch. The same input always gives the same decision. */
export function decide(snapshot: Snapshot, policy: RolloutPolicy, now: number): Decision {
  const settled = settle(new Evaluations(snapshot, policy, now));
  const { rollout } = settled.snapshot;
  const unrecorded = rollout !== snapshot.rollout;
  return {
    ...explain(settled),
    record: unrecorded ? rollout : undefined,
    signals: unrecorded ? [] : signalsOf(settled),
    nodeActions: unrecorded ? [] : nodeActionsOf(settled),
  };
}

/** Moves on until nothing moves, so that one write records all: a target done, and the next ones intended. */
function settle(evaluations: Evaluations): Evaluations {
  const { snapshot, policy, now } = evaluations;
  const rollout = advance(evaluations);
  return rollout === snapshot.rollout ? evaluations : settle(new Evaluations({ ...snapshot, rollout }, policy, now));
}

/** Signals for what is recorded as it stands, whatever else is to be recorded. */
export function signalsOf(evaluations: Evaluations): Signalling[] {
  const { snapshot, policy } = evaluations;
  const stage = activeStage(snapshot.rollout);
  if (!stage || isFinal(snapshot.rollout) || snapshot.rollout.unread) return [];
  return stage.targets.flatMap((target) => {
    if (evaluations.of(stage, target).effect !== 'signal') return [];
    const { node, platform = '' } = factsOf(snapshot, target);
    const owner = ownerOf(snapshot.rollout, target);
    const found = node?.unschedulable === true && node.cordonOwner === undefined;
    const cordon = { cordonFor: owner, ...(found ? { foundCordoned: true as const } : {}) };
    const agent = node && policy.drain.enabled ? { ...policy.agent, ...cordon } : policy.agent;
    if (!stage.payloads) return [{ stage, target, agent }];
    const payload = stage.payloads[platform];
    return payload ? [{ stage, target, payload, agent }] : [];
  });
}
