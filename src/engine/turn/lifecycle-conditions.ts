/** Decides which lifecycle conditions the Nodes of a plan must have, if its policy asks for them. */
import {
  isChange,
  type LifecycleCondition,
  lifecycleChange,
  lifecycleOn,
} from '../../drain/lifecycle-conditions.ts';
import type { Node } from '../../kube/resources.ts';
import { onceForEach } from '../../util/memo.ts';
import type { Assessment } from '../assess/assess.ts';
import { isTargetHeld } from '../gates/held-targets.ts';
import { factsOf } from '../gates/types.ts';
import type { NodeAction } from '../model/decision.ts';
import type { NodeView, TargetFacts } from '../model/facts.ts';
import { isFinal, type Stage, type Target } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

type Announcement = Extract<NodeAction, { kind: 'announce' }>;

/** The most Nodes that one turn announces as planned, so that a large plan does not delay the work on its nodes. */
const PLANNED_AT_ONCE = 20;

/**
 * Returns the changes of lifecycle conditions that this turn must write, at most one change for each Node. If the write
 * for a Node was refused, the Node gets no conditions until the pause is over. During this pause, its upgrade continues
 * without them.
 */
export const announcementsOf = onceForEach((assessment: Assessment): readonly Announcement[] => {
  const { snapshot } = assessment;
  const { markOwner: owner } = snapshot.plan;
  if (owner === undefined || !isConcerned(assessment, owner)) return [];
  const announcements = Array.from(wishesOf(assessment)).flatMap(
    ([node, { stage, target, wanted, shown, isRefused }]): Announcement[] => {
      const change = lifecycleChange(shown, owner, withoutPlanned(wanted));
      return isRefused || !isChange(change)
        ? []
        : [{ kind: 'announce', stage, target, node, owner, change }];
    },
  );
  const isPlanned = ({ change: { set, clear } }: Announcement): boolean =>
    clear.length === 0 && set.every((type) => type === 'MaintenancePlanned');
  const urgent = announcements.filter((each) => !isPlanned(each));
  return [...urgent, ...announcements.filter(isPlanned).slice(0, PLANNED_AT_ONCE)];
});

/** Returns true if the policy asks for conditions, or if Nodes still have conditions of the plan. */
function isConcerned({ snapshot, policy }: Assessment, owner: string): boolean {
  const { rollout } = snapshot;
  const { fleet } = snapshot.cluster;
  if (rollout.unread || rollout.phase === 'new') return false;
  const isWanted = policy.nodeConditions === true && !isFinal(rollout);
  return isWanted || (fleet !== undefined && ownersAmong(fleet).has(owner));
}

const ownersAmong = onceForEach(
  (fleet: readonly Node[]): ReadonlySet<string | undefined> =>
    new Set(fleet.flatMap(lifecycleOn).map(({ owner }) => owner)),
);

interface Wish {
  readonly stage: Stage;
  readonly target: Target;
  readonly shown: NonNullable<NodeView['lifecycle']>;
  readonly wanted: ReadonlySet<LifecycleCondition>;
  readonly isRefused: boolean;
}

/** Returns the conditions that the targets want for each Node, by the name of the Node. Several targets may have the same Node. */
function wishesOf(assessment: Assessment): ReadonlyMap<string, Wish> {
  const wishes = new Map<string, Wish>();
  for (const stage of assessment.snapshot.rollout.stages)
    for (const target of stage.targets) {
      const facts = factsOf(assessment.snapshot, target);
      const { node, announcementRefusal } = facts;
      if (node === undefined) continue;
      const known = wishes.get(node.name);
      const wanted = conditionsFor(assessment, stage, target, facts);
      wishes.set(node.name, {
        stage,
        target,
        shown: node.lifecycle ?? [],
        wanted: new Set([...(known?.wanted ?? []), ...wanted]),
        isRefused: known?.isRefused === true || announcementRefusal !== undefined,
      });
    }
  return wishes;
}

/**
 * Removes `MaintenancePlanned` if maintenance of the Node is in progress. Such a Node can have both conditions if one
 * stage upgrades it now and a later stage upgrades it again.
 */
function withoutPlanned(wanted: ReadonlySet<LifecycleCondition>): readonly LifecycleCondition[] {
  const all = [...wanted];
  return wanted.has('MaintenanceInProgress')
    ? all.filter((type) => type !== 'MaintenancePlanned')
    : all;
}

/** Returns the conditions that one target wants to be True. */
function conditionsFor(
  assessment: Assessment,
  stage: Stage,
  target: Target,
  facts: TargetFacts,
): readonly LifecycleCondition[] {
  const { snapshot, policy } = assessment;
  if (policy.nodeConditions !== true) return [];
  const { kind } = facts.observation;
  const isAtWork = kind === 'sent' || kind === 'working';
  const isStopped = isFinal(snapshot.rollout) || snapshot.plan.controls.abort !== undefined;
  const isPlanned = (): boolean => !isStopped && !isTargetHeld(assessment, stage, target);
  switch (target.state) {
    case 'pending':
      return isPlanned() ? ['MaintenancePlanned'] : [];
    case 'intended':
      if (kind === 'none' && assessment.of(stage, target).effect !== 'signal')
        return isPlanned() ? ['MaintenancePlanned'] : [];
      return isStopped && !isAtWork ? [] : ['MaintenanceInProgress', ...drainOf(facts, policy)];
    case 'failed':
    case 'skipped':
      return isAtWork ? ['MaintenanceInProgress', ...drainOf(facts, policy)] : [];
    case 'done':
    case 'missing':
    case 'unsupported':
      return [];
  }
}

/**
 * Returns the condition that shows the progress of the drain by the leader. A Node gets `Drained` before the work on
 * the node continues, and keeps it until the node is uncordoned. A Node whose drain was stopped at the deadline never
 * gets it.
 */
function drainOf(
  { node, observation, drain }: TargetFacts,
  { drain: { enabled, cordonOnly }, heldBy }: RolloutPolicy,
): readonly LifecycleCondition[] {
  if (node?.unschedulable !== true || !enabled || cordonOnly === true) return [];
  if (observation.kind === 'working' && observation.waitsFor === 'drain') {
    if (drain?.kind === 'drained') return ['Drained'];
    return drain?.kind === 'failed' || heldBy !== undefined ? [] : ['DrainInProgress'];
  }
  return node.lifecycle?.some(({ type, owner }) => type === 'Drained' && owner !== undefined)
    ? ['Drained']
    : [];
}
