/** Owns what the leader does beside signalling: for targets that ask, for those that must stop, and to leave nothing behind. */
import { isPendingFor } from '../../drain/cordon.ts';
import { factsOf } from '../gates/context.ts';
import { abortReason } from '../model/controls.ts';
import { isOwnedBy, pendingOwnerOf } from '../model/cordon-owners.ts';
import type { NodeAction } from '../model/decided.ts';
import type { NodeView, Snapshot, TargetFacts } from '../model/observed.ts';
import { because, type Reason } from '../model/reasons.ts';
import type { RecordedState, Stage, Target } from '../model/recorded.ts';
import { isFinal } from '../model/recorded.ts';
import { activeStage } from '../model/stages.ts';
import { isUnanswered } from '../observe/probe-backoff.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { uncordonOf } from './cordon-and-drain.ts';
import type { Evaluations } from './evaluate-target.ts';

/** Taints in one go: what comes later in the list has time. */
const TAINTS_AT_ONCE = 20;

export function nodeActionsOf(evaluations: Evaluations): NodeAction[] {
  const { snapshot, policy } = evaluations;
  if (snapshot.rollout.unread) return [];
  const nodeActions = snapshot.rollout.stages.flatMap((stage) =>
    stage.targets.flatMap((target) => nodeActionFor(evaluations, stage, target) ?? []),
  );
  return [...nodeActions, ...taints(snapshot, policy)];
}

function nodeActionFor(evaluations: Evaluations, stage: Stage, target: Target): NodeAction | undefined {
  const { snapshot, policy } = evaluations;
  const facts = factsOf(snapshot, target);
  const { observation, node } = facts;
  if (mustStop(snapshot, target) && canStop(facts)) {
    return { kind: 'cancel', stage, target, node: node?.name, reason: stopReason(snapshot, target) };
  }
  if (target.state === 'intended') return evaluations.of(stage, target).nodeAction;
  // Given up while it was at work, and now it is through: somebody has to let it back.
  const isThrough =
    observation.kind === 'working' && observation.waitsFor === 'uncordon' && facts.drainDelegation !== false;
  if (isThrough && mustStop(snapshot, target)) {
    return { kind: 'acknowledge', stage, target, node: node?.name, uncordon: uncordonOf(facts, policy) };
  }
  return cleanUp(snapshot, stage, target, facts);
}

/** What must not go on: whatever is given up, and all that can be stopped of a rollout that is aborted or over. */
function mustStop({ rollout, controls }: Snapshot, { state }: Target): boolean {
  if (state === 'done') return false;
  return state === 'failed' || isFinal(rollout) || (controls.abort !== undefined && state === 'intended');
}

function canStop({ observation }: TargetFacts): boolean {
  return observation.kind === 'sent' || (observation.kind === 'working' && observation.cancellable === true);
}

function stopReason({ rollout, controls }: Snapshot, { name }: Target): Reason {
  if (controls.abort !== undefined) return abortReason(controls.abort);
  return rollout.reason ?? because('TargetFailed', `${name} was given up`);
}

/** A cordon or a taint of ours stays only as long as the target needs it. */
function cleanUp(snapshot: Snapshot, stage: Stage, target: Target, facts: TargetFacts): NodeAction | undefined {
  const { rollout } = snapshot;
  const { node } = facts;
  if (!node) return undefined;
  const isNeeded = (): boolean => isAtWork(facts) || isElsewhere(snapshot, rollout.stages, target, node, 'intended');
  const cordon = isOwnedBy(rollout, node.cordonOwner) && !isNeeded();
  const taint = isPendingFor(node.taintOwner, pendingOwnerOf(rollout.source)) && !isToCome(snapshot, target, node);
  return cordon || taint ? { kind: 'clean-up', stage, target, node: node.name, cordon, taint } : undefined;
}

/** Also where a later command brings the same node's turn again. */
function isToCome(snapshot: Snapshot, target: Target, node: NodeView): boolean {
  const { rollout } = snapshot;
  if (isFinal(rollout)) return false;
  const stage = activeStage(rollout);
  return target.state === 'pending' || isElsewhere(snapshot, stage ? [stage] : [], target, node, 'pending');
}

/** Given up, and yet in the middle of it: pods must not come before its end. A node that is not Ready gets none anyway. */
function isAtWork({ observation: { kind }, ready }: TargetFacts): boolean {
  return (kind === 'sent' || kind === 'working') && ready !== false;
}

/** Another command of the plan may be at work on the same node, or about to be. */
function isElsewhere(
  snapshot: Snapshot,
  stages: readonly Stage[],
  own: Target,
  { name }: NodeView,
  state: RecordedState,
): boolean {
  return stages.some(({ targets }) =>
    targets.some((other) => other !== own && other.state === state && factsOf(snapshot, other).node?.name === name),
  );
}

/** Pods that are evicted now must not land where they would be evicted again. */
function taints(snapshot: Snapshot, policy: RolloutPolicy): NodeAction[] {
  const stage = activeStage(snapshot.rollout);
  if (!stage || isFinal(snapshot.rollout) || !policy.drain.softTaint || !policy.drain.enabled) return [];
  const isEvicting = stage.targets.some((each) => each.state === 'intended' && evicts(factsOf(snapshot, each)));
  if (snapshot.controls.abort !== undefined || !isEvicting) return [];
  const pending = stage.targets.filter((target) => {
    const { node } = factsOf(snapshot, target);
    return target.state === 'pending' && node !== undefined && node.taintOwner === undefined && !node.unschedulable;
  });
  return pending.slice(0, TAINTS_AT_ONCE).flatMap((target): NodeAction[] => {
    const { node } = factsOf(snapshot, target);
    return node ? [{ kind: 'taint', stage, target, node: node.name }] : [];
  });
}

function evicts({ drainPreview, drain }: TargetFacts): boolean {
  if (drain?.kind === 'draining' && drain.left > 0) return true;
  return typeof drainPreview === 'object' && !isUnanswered(drainPreview) && drainPreview.evictable > 0;
}
