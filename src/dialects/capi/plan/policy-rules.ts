/**
 * The rules for the policy of an update: those that the objects of Cluster API contain, and those that follow from the fact
 * that Cluster API chooses which Machine comes next.
 */

import type { PodRule } from '../../../drain/pod-rules.ts';
import type { World } from '../../../engine/contract/world.ts';
import { controlsOn } from '../../../engine/model/controls.ts';
import type { Obstacle } from '../../../engine/model/facts.ts';
import type { RolloutPolicy } from '../../../engine/policy/rollout-policy.ts';
import { type Node, nodes } from '../../../kube/resources.ts';
import { sameJson } from '../../../util/json.ts';
import { groupOf, type MachineGroup, newestOf, type Requested, stateIn } from './machine-groups.ts';
import { type MachineUpdate, updateOn } from './machine-update.ts';

/** The rules for pods with a drain label. Cluster API ignores case and hyphens in its value, so each usual spelling is listed. */
const LABEL_RULES = [
  labelled('leave', ['skip', 'Skip', 'SKIP']),
  labelled('wait', [
    'wait-completed',
    'Wait-Completed',
    'waitcompleted',
    'waitCompleted',
    'WaitCompleted',
  ]),
];

function labelled(action: PodRule['action'], values: string[]): PodRule {
  const matchExpressions = [{ key: 'cluster.x-k8s.io/drain', operator: 'In', values }];
  return { pods: [{ selector: { matchExpressions } }], action, turn: 0 };
}

/**
 * Returns the policy with the rules of the request. If an UpgradePolicy covers the plan, the drain timeout of the
 * UpgradePolicy replaces the drain timeout of the Machine.
 */
export function withRules(node: Node, policy: RolloutPolicy): RolloutPolicy {
  const update = updateOn(node);
  const chosen = withoutOrder(policy);
  // A plan with several Machines gets its rules from those that are in progress.
  // Its Nodes download nothing in advance: what a Node runs is named only by the request on this Node itself.
  return update?.owner === undefined ? ruledBy(update, chosen) : { ...chosen, prefetch: 'none' };
}

/** Returns the policy without its order of nodes, because Cluster API chooses which Machine comes next. */
function withoutOrder(policy: RolloutPolicy): RolloutPolicy {
  const { order: _order, spread: _spread, ...rest } = policy;
  const { startsWithFewest: _fewest, ...drain } = policy.drain;
  return { ...rest, drain };
}

function ruledBy(update: MachineUpdate | undefined, policy: RolloutPolicy): RolloutPolicy {
  const { paused, drainSeconds = 0, podRules = [] } = update?.rules ?? {};
  const ofPolicy = policy.drain.options;
  const drain = {
    ...policy.drain,
    options: { ...ofPolicy, podRules: [...LABEL_RULES, ...podRules, ...(ofPolicy.podRules ?? [])] },
  };
  const ruled = { ...policy, ...(paused && { heldBy: paused }), drain };
  if (drainSeconds === 0 || policy.name !== undefined) return ruled;
  const stepDeadlines = { ...policy.stepDeadlines, drain: drainSeconds * 1000 };
  return { ...ruled, stepDeadlines, drain: { ...drain, onDeadline: 'proceed' } };
}

/**
 * Returns the policy with the rules of the Machine that decides for the plan. While a Machine in progress is paused, the
 * whole plan is held.
 */
export function withRulesOfMachines(
  node: Node,
  policy: RolloutPolicy,
  world: World,
): RolloutPolicy {
  if (updateOn(node)?.owner === undefined) return policy;
  const group = groupOf(world.list(nodes), node);
  if (group === undefined) return policy;
  const { update } = decidingOf(group);
  const { paused: _paused, ...rules } = update.rules ?? { drainSeconds: 0 };
  const paused = pausedIn(group);
  return ruledBy(
    { ...update, rules: { ...rules, ...(paused !== undefined && { paused }) } },
    policy,
  );
}

/** Returns what pauses a Machine in progress, or else every Machine that waits; undefined if nothing does. */
function pausedIn({ chosen }: MachineGroup): string | undefined {
  const pausedOf = ({ update }: Requested): string | undefined => update.rules?.paused;
  const [first, ...others] = chosen.filter(isInState(chosen, 'pending')).map(pausedOf);
  const all = others.includes(undefined) ? undefined : first;
  const working = chosen.filter(isInState(chosen, 'intended'));
  // A Machine that waits does not hold one that has started.
  return working.length === 0 ? all : working.map(pausedOf).find((each) => each !== undefined);
}

/**
 * Returns the Machine whose drain rules the plan follows now: one that is in progress, else the first one that waits.
 */
function decidingOf({ chosen }: MachineGroup): Requested {
  const [first] = chosen;
  const isWaiting = isInState(chosen, 'pending');
  return (
    chosen.find(isInState(chosen, 'intended')) ??
    chosen.find((each) => isWaiting(each) && each.update.rules?.paused === undefined) ??
    first
  );
}

function isInState(
  chosen: readonly Requested[],
  state: 'pending' | 'intended',
): (each: Requested) => boolean {
  return (each) => (stateIn(chosen, each)?.state ?? 'pending') === state;
}

/** Returns what keeps a Machine of a plan with several Machines from starting; undefined if nothing does. */
export function obstacleOf(world: World, name: string, plan: Node): Obstacle | undefined {
  const { owner } = updateOn(plan) ?? {};
  const group = owner && groupOf(world.list(nodes), plan);
  if (!group) return undefined;
  const own = group.chosen.find(({ node }) => node.metadata.name === name);
  if (own === undefined)
    return {
      message: 'Cluster API has not chosen the next Machine yet',
      ends: `Cluster API chooses it, as the strategy of ${owner?.kind} ${owner?.name} allows`,
      isUnchosen: true,
    };
  const { paused } = own.update.rules ?? {};
  if (paused !== undefined)
    return {
      message: `${paused} pauses the update of ${name}`,
      ends: `${paused} is no longer paused`,
    };
  const [newest] = (owner && newestOf(world.list(nodes), owner.uid)) ?? [];
  if (newest && newest.node.metadata.name !== plan.metadata.name && controlsOn(newest.node).paused)
    return {
      message: `a later plan of ${owner?.kind} ${owner?.name} is paused`,
      ends: 'that plan is resumed',
    };
  const deciding = decidingOf(group);
  if (deciding === own || isEquallyRuled(deciding.update, own.update)) return undefined;
  const other = deciding.node.metadata.name;
  return {
    message: `other MachineDrainRules apply to ${other}, which comes first`,
    ends: `${other} is done`,
  };
}

function isEquallyRuled({ rules: a }: MachineUpdate, { rules: b }: MachineUpdate): boolean {
  return (
    (a?.drainSeconds ?? 0) === (b?.drainSeconds ?? 0) &&
    sameJson(a?.podRules ?? [], b?.podRules ?? [])
  );
}
