/** Chooses node actions for targets that wait for the leader, for targets that must stop, and to clean up. */

import { isPendingFor } from '../../drain/cordon-marks.ts';
import type { Assessment } from '../assess/assess.ts';
import { awaitedByTarget, uncordonOf } from '../assess/choose-drain-action.ts';
import { touchedIn } from '../assess/evaluate-target.ts';
import { lateReason } from '../assess/failure-reason.ts';
import { reasonToGiveUp } from '../assess/target-failures.ts';
import { factsOf, type TargetContext } from '../gates/types.ts';
import { answerOf } from '../model/asked.ts';
import { abortReason } from '../model/controls.ts';
import type { NodeAction } from '../model/decision.ts';
import type { NodeView, TargetFacts } from '../model/facts.ts';
import type { Reason, ReasonCode } from '../model/reasons.ts';
import {
  activeStage,
  isFinal,
  isOwnedBy,
  pendingOwnerOf,
  type RecordedState,
  type Stage,
  type Target,
  targetsIn,
} from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { announcementsOf } from './lifecycle-conditions.ts';
import { downloadChecksOf, prefetchesOf } from './prefetch.ts';
import { protectionsOf } from './protect-nodes.ts';
import { requiredDownloadsOf } from './required-downloads.ts';

/** The most Nodes that one decision taints. The Nodes of targets later in the list are tainted by later decisions. */
const TAINTS_AT_ONCE = 20;

/** Returns the node actions of this turn; empty while a part of the record cannot be read. */
export function nodeActionsOf(assessment: Assessment): NodeAction[] {
  const { snapshot, policy } = assessment;
  if (snapshot.rollout.unread) return [];
  // The conditions come first, so that other controllers observe them before the drain begins and before the work on
  // the node continues.
  const announcements = announcementsOf(assessment);
  const announced = new Set(announcements.map(({ node }) => node));
  // Node actions on a Node whose conditions this turn writes are left for a later turn, because two writes of one turn to the same Node
  // would conflict.
  const isFree = ({ node }: NodeAction): boolean => node === undefined || !announced.has(node);
  const nodeActions = touchedIn(snapshot)
    .flatMap(({ stage, targets }) =>
      targets.flatMap((target) => nodeActionFor(assessment, stage, target) ?? []),
    )
    .filter(isFree);
  const acted = new Set(nodeActions.map(({ target }) => target));
  return [
    ...announcements,
    ...nodeActions,
    ...protectionsOf(assessment).filter((each) => !acted.has(each.target) && isFree(each)),
    ...taints(snapshot, policy).filter(isFree),
    ...downloadChecksOf(assessment),
    ...prefetchesOf(assessment),
    ...requiredDownloadsOf(assessment),
  ];
}

function nodeActionFor(
  assessment: Assessment,
  stage: Stage,
  target: Target,
): NodeAction | undefined {
  const { snapshot, policy } = assessment;
  const facts = factsOf(snapshot, target);
  const { observation, node } = facts;
  const canStop =
    observation.kind === 'sent' ||
    (observation.kind === 'working' && observation.cancellable === true);
  if (mustStop(snapshot, target) && canStop) {
    const reason = stopReason({ ...assessment, stage, target }, facts);
    return { kind: 'cancel', stage, target, node: node?.name, reason };
  }
  if (target.state === 'intended')
    return assessment.of(stage, target).nodeAction ?? keepOf(stage, target, facts);
  // The target failed or was aborted after its upgrade completed, so its node must still be uncordoned.
  const isComplete =
    observation.kind === 'working' &&
    observation.waitsFor === 'uncordon' &&
    answerOf(facts.drainDelegation) !== false;
  if (isComplete && mustStop(snapshot, target))
    return {
      kind: 'acknowledge',
      stage,
      target,
      node: node?.name,
      uncordon: uncordonOf(facts, policy),
    };
  return cleanUp(snapshot, stage, target, facts);
}

/** Returns the node action that keeps the success of the target; undefined if nothing must be kept. */
function keepOf(
  stage: Stage,
  target: Target,
  { observation, node }: TargetFacts,
): NodeAction | undefined {
  const isUnkept = observation.kind !== 'none' && observation.isUnkept === true;
  return isUnkept && node ? { kind: 'keep-report', stage, target, node: node.name } : undefined;
}

/**
 * Returns true for a failed or skipped target. Returns true for a target that is not done if the rollout is over, and
 * for a target in progress if the rollout is aborted.
 */
function mustStop({ rollout, plan: { controls } }: Snapshot, { state }: Target): boolean {
  if (state === 'done') return false;
  const isGivenUp = state === 'failed' || state === 'skipped';
  const isAborted = controls.abort !== undefined && state === 'intended';
  return isGivenUp || isFinal(rollout) || isAborted;
}

/** The codes of reasons that sum up a whole rollout. Such a reason is the cause of no target. */
const SUMMARIES: ReadonlySet<ReasonCode> = new Set([
  'DoneWithFailures',
  'DoneWithSkipped',
  'Stopped',
]);

/**
 * Returns the reason why the target must stop. The own cause of the target comes first: the reason of the rollout may be
 * about another target, or about all of them.
 */
function stopReason(context: TargetContext, facts: TargetFacts): Reason {
  const { snapshot, target } = context;
  const { rollout } = snapshot;
  const { controls } = snapshot.plan;
  const late = lateReason(target, facts, awaitedByTarget(context, facts));
  const own = target.state === 'failed' ? reasonToGiveUp(snapshot, target, late) : undefined;
  if (own) return own;
  if (controls.abort !== undefined) return abortReason(controls.abort);
  const { reason } = rollout;
  if (reason === undefined || SUMMARIES.has(reason.code)) return late;
  return reason.about === undefined ? reason : late;
}

function cleanUp(
  snapshot: Snapshot,
  stage: Stage,
  target: Target,
  facts: TargetFacts,
): NodeAction | undefined {
  const { rollout } = snapshot;
  const { node } = facts;
  if (node?.cordonOwner === undefined && node?.taintOwner === undefined) return undefined;
  const { observation } = facts;
  const { kind } = observation;
  // The target waits for its next attempt. Until then, its node gets no pods.
  const isHalfDone =
    target.state === 'pending' &&
    ((observation.kind === 'failed' && observation.isHalfDone === true) ||
      (observation.kind === 'none' && observation.begun === true));
  // The work of a failed target may still run. The node stays cordoned until this work has ended. A node that is not Ready is uncordoned
  // at once, because it gets no pods anyway.
  const isAtWork = (kind === 'sent' || kind === 'working') && facts.ready !== false;
  const isNeeded = (): boolean =>
    isAtWork || isHalfDone || hasOnNode(snapshot, rollout.stages, node, 'intended');
  const cordon = isOwnedBy(rollout, node.cordonOwner) && !isNeeded();
  const taint =
    isPendingFor(node.taintOwner, pendingOwnerOf(rollout.source)) &&
    !isToCome(snapshot, target, node);
  return cordon || taint
    ? { kind: 'clean-up', stage, target, node: node.name, cordon, taint }
    : undefined;
}

/** Returns true if the target, or another target on the same node, is still pending. */
function isToCome(snapshot: Snapshot, target: Target, node: NodeView): boolean {
  const { rollout } = snapshot;
  if (isFinal(rollout)) return false;
  const stage = activeStage(rollout);
  return target.state === 'pending' || hasOnNode(snapshot, stage ? [stage] : [], node, 'pending');
}

function hasOnNode(
  snapshot: Snapshot,
  stages: readonly Stage[],
  { name }: NodeView,
  state: RecordedState,
): boolean {
  return targetsIn({ stages }, state).some(
    (target) => factsOf(snapshot, target).node?.name === name,
  );
}

/** Taints the nodes of pending targets, so that evicted pods do not move to a node that is drained next. */
function taints(snapshot: Snapshot, policy: RolloutPolicy): NodeAction[] {
  const stage = activeStage(snapshot.rollout);
  if (!stage || isFinal(snapshot.rollout) || !policy.drain.softTaint || !policy.drain.enabled)
    return [];
  const isEvicting = stage.targets.some(
    (each) => each.state === 'intended' && evicts(factsOf(snapshot, each)),
  );
  if (snapshot.plan.controls.abort !== undefined || !isEvicting) return [];
  return stage.targets
    .flatMap((target): NodeAction[] => {
      const { node } = factsOf(snapshot, target);
      const isFree = target.state === 'pending' && node !== undefined && !node.unschedulable;
      return isFree && node.taintOwner === undefined
        ? [{ kind: 'taint', stage, target, node: node.name }]
        : [];
    })
    .slice(0, TAINTS_AT_ONCE);
}

function evicts({ drainPreview, drain }: TargetFacts): boolean {
  if (drain?.kind === 'draining' && drain.left > 0) return true;
  return (answerOf(drainPreview)?.evictable ?? 0) > 0;
}
