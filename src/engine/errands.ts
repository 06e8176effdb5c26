/** Owns what the leader does beside signalling: for targets that ask, for those that must stop, and to leave nothing behind. */
import { isPendingFor } from '../drain/cordon.ts';
import { liftOf } from './assist.ts';
import { isOwnedBy, pendingOwnerOf } from './cordons.ts';
import { factsOf } from './gate-input.ts';
import type { Errand, NodeView, RecordedState, Snapshot, Stage, Target, TargetFacts } from './model.ts';
import { isFinal } from './model.ts';
import { abortReason } from './orders.ts';
import type { CampaignPolicy } from './policy/campaign-policy.ts';
import { progressOf } from './progress.ts';
import { because, type Reason } from './reasons.ts';
import { activeStage } from './stages.ts';
import { isUnanswered } from './unanswered.ts';

/** Taints in one go: what comes later in the list has time. */
const TAINTS_AT_ONCE = 20;

export function errandsOf(snapshot: Snapshot, policy: CampaignPolicy, now: number): Errand[] {
  if (snapshot.campaign.unread) return [];
  const errands = snapshot.campaign.stages.flatMap((stage) =>
    stage.targets.flatMap((target) => errandFor(snapshot, stage, target, policy, now) ?? []),
  );
  return [...errands, ...taints(snapshot, policy)];
}

function errandFor(
  snapshot: Snapshot,
  stage: Stage,
  target: Target,
  policy: CampaignPolicy,
  now: number,
): Errand | undefined {
  const facts = factsOf(snapshot, target);
  const { observation, node } = facts;
  if (mustStop(snapshot, target) && canStop(facts)) {
    return { kind: 'withdraw', stage, target, node: node?.name, reason: stopReason(snapshot, target) };
  }
  if (target.state === 'intended') return progressOf(snapshot, stage, target, policy, now).errand;
  // Given up while it was at work, and now it is through: somebody has to let it back.
  const isThrough = observation.kind === 'working' && observation.asks === 'uncordon' && facts.consent !== false;
  if (isThrough && mustStop(snapshot, target)) {
    return { kind: 'go-on', stage, target, node: node?.name, uncordon: liftOf(facts, policy) };
  }
  return tidying(snapshot, stage, target, facts);
}

/** What must not go on: whatever is given up, and all that can be stopped of a campaign that is aborted or over. */
function mustStop({ campaign, orders }: Snapshot, { state }: Target): boolean {
  if (state === 'done') return false;
  return state === 'failed' || isFinal(campaign) || (orders.abort !== undefined && state === 'intended');
}

function canStop({ observation }: TargetFacts): boolean {
  return observation.kind === 'sent' || (observation.kind === 'working' && observation.withdrawable === true);
}

function stopReason({ campaign, orders }: Snapshot, { name }: Target): Reason {
  if (orders.abort !== undefined) return abortReason(orders.abort);
  return campaign.reason ?? because('TargetFailed', `${name} was given up`);
}

/** A cordon or a taint of ours stays only as long as the target needs it. */
function tidying(snapshot: Snapshot, stage: Stage, target: Target, facts: TargetFacts): Errand | undefined {
  const { campaign } = snapshot;
  const { node } = facts;
  if (!node) return undefined;
  const isNeeded = (): boolean => isAtWork(facts) || isElsewhere(snapshot, campaign.stages, target, node, 'intended');
  const cordon = isOwnedBy(campaign, node.cordonOwner) && !isNeeded();
  const taint = isPendingFor(node.taintOwner, pendingOwnerOf(campaign.source)) && !isToCome(snapshot, target, node);
  return cordon || taint ? { kind: 'tidy', stage, target, node: node.name, cordon, taint } : undefined;
}

/** Also where a later command brings the same node's turn again. */
function isToCome(snapshot: Snapshot, target: Target, node: NodeView): boolean {
  const { campaign } = snapshot;
  if (isFinal(campaign)) return false;
  const stage = activeStage(campaign);
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
function taints(snapshot: Snapshot, policy: CampaignPolicy): Errand[] {
  const stage = activeStage(snapshot.campaign);
  if (!stage || isFinal(snapshot.campaign) || !policy.drain.softTaint || !policy.drain.enabled) return [];
  const isEvicting = stage.targets.some((each) => each.state === 'intended' && evicts(factsOf(snapshot, each)));
  if (snapshot.orders.abort !== undefined || !isEvicting) return [];
  const pending = stage.targets.filter((target) => {
    const { node } = factsOf(snapshot, target);
    return target.state === 'pending' && node !== undefined && node.taintOwner === undefined && !node.unschedulable;
  });
  return pending.slice(0, TAINTS_AT_ONCE).flatMap((target): Errand[] => {
    const { node } = factsOf(snapshot, target);
    return node ? [{ kind: 'taint', stage, target, node: node.name }] : [];
  });
}

function evicts({ outlook, drain }: TargetFacts): boolean {
  if (drain?.kind === 'draining' && drain.left > 0) return true;
  return outlook !== undefined && outlook !== 'unasked' && !isUnanswered(outlook) && outlook.evictable > 0;
}
