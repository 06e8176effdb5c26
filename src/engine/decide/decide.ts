/**
 * Owns the decision: one pure function from what is recorded and seen to what is recorded and signalled next. The same
 * function runs in the controller, in `refit status`, in the tests and in the explorer; there is no second copy of a rule.
 */

import { factsOf } from '../gates/context.ts';
import { ownerOf } from '../model/cordon-owners.ts';
import type { Decision, Signalling } from '../model/decided.ts';
import type { Snapshot } from '../model/observed.ts';
import type { Rollout } from '../model/recorded.ts';
import { isFinal } from '../model/recorded.ts';
import { activeStage } from '../model/stages.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { advance } from './advance.ts';
import { progressOf } from './evaluate-target.ts';
import { explain } from './explain.ts';
import { nodeActionsOf } from './node-actions.ts';

/** `now` in milliseconds since the Unix epoch. The same input always gives the same decision. */
export function decide(snapshot: Snapshot, policy: RolloutPolicy, now: number): Decision {
  const rollout = settle(snapshot, policy, now);
  const unrecorded = rollout !== snapshot.rollout;
  const explanation = explain({ ...snapshot, rollout }, policy, now);
  return {
    ...explanation,
    record: unrecorded ? rollout : undefined,
    signals: unrecorded ? [] : signalsOf(snapshot, policy, now),
    nodeActions: unrecorded ? [] : nodeActionsOf(snapshot, policy, now),
  };
}

/** Moves on until nothing moves, so that one write records all: a target done, and the next ones intended. */
function settle(snapshot: Snapshot, policy: RolloutPolicy, now: number): Rollout {
  const rollout = advance(snapshot, policy, now);
  return rollout === snapshot.rollout ? rollout : settle({ ...snapshot, rollout }, policy, now);
}

/** Signals for what is recorded as it stands, whatever else is to be recorded. */
export function signalsOf(snapshot: Snapshot, policy: RolloutPolicy, now: number): Signalling[] {
  const stage = activeStage(snapshot.rollout);
  if (!stage || isFinal(snapshot.rollout) || snapshot.rollout.unread) return [];
  return stage.targets.flatMap((target) => {
    if (progressOf(snapshot, stage, target, policy, now).effect !== 'signal') return [];
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
