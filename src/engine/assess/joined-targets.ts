/** Decides whether nodes that joined after the start of a plan become targets of its worker stage, or are left out. */
import { onceForEach } from '../../util/memo.ts';
import { listed } from '../../util/phrases.ts';
import { BEFORE_ROLLOUT, evaluate } from '../gates/registry.ts';
import { type DecisionContext, factsOf, gateInput } from '../gates/types.ts';
import type { JoinedTarget } from '../model/joined-target.ts';
import { because, type Reason } from '../model/reasons.ts';
import { type Role, type Rollout, shownRole } from '../model/rollout.ts';
import { freeSlots } from '../schedule/slots.ts';

/** A node that joined after the plan began. */
export interface JoinedNode {
  readonly name: string;
  readonly role: Role;
  /** The targets that the node would become: one target in each stage that selects the node. */
  readonly places: readonly JoinedTarget[];
  /** True if the node becomes a target of the plan. */
  readonly isIncluded: boolean;
  /** The message says that the node joined, whether it is included, and what to do if it is not. */
  readonly reason: Reason;
}

/** Returns the nodes that match the running plan, need its version and are not in its record. */
export function joinedNodes(context: DecisionContext): readonly JoinedNode[] {
  const { rollout } = context.snapshot;
  const { joined = [] } = context.snapshot.plan;
  if (joined.length === 0 || rollout.phase !== 'running' || rollout.unread) return [];
  const known = new Set(rollout.stages.flatMap(({ targets }) => targets.map(({ key }) => key)));
  const missing = joined.filter(({ target }) => !known.has(target.key));
  const byNode = Map.groupBy(missing, ({ role, target }) => `${role}/${target.name}`);
  return [...byNode.values()].flatMap((places) => {
    const [first] = places;
    const isDone = places.every(({ target }) => factsOf(context.snapshot, target).isThere);
    if (first === undefined || isDone) return [];
    const { role, target } = first;
    const cause = causeToLeaveOut(context, places);
    const reason =
      cause === undefined ? includedReason(target.name) : leftOut(target.name, role, cause);
    return [{ name: target.name, role, places, isIncluded: cause === undefined, reason }];
  });
}

/**
 * Returns the rollout with the included nodes as additional targets of their stages; the same object if there are no
 * such nodes. A rollout that starts no further work includes no node.
 */
export function withJoinedNodes(
  context: DecisionContext & { readonly isStopping: boolean },
): Rollout {
  const { rollout } = context.snapshot;
  if (context.policy.includesNew !== true || context.isStopping) return rollout;
  const places = joinedNodes(context).flatMap((node) => (node.isIncluded ? node.places : []));
  if (places.length === 0) return rollout;
  const byStage = Map.groupBy(places, ({ stage }) => stage);
  const stages = rollout.stages.map((stage) => {
    const joined = byStage.get(stage.id)?.map(({ target }) => target);
    return joined === undefined ? stage : { ...stage, targets: [...stage.targets, ...joined] };
  });
  return { ...rollout, stages };
}

/** Returns the reason why these nodes are included. */
export function includedReason(...names: readonly string[]): Reason {
  const are = names.length === 1 ? 'is' : 'are';
  return because(
    'NodeIncluded',
    `${listed(names)} joined after the plan began and ${are} included, as newNodes of the policy says`,
  );
}

function leftOut(name: string, role: Role, cause: string): Reason {
  const next = 'apply the plan again once it has ended';
  const todo =
    role === 'controller' ? `install ${name} with the version of the plan, or ${next}` : next;
  return because(
    'NodeLeftOut',
    `${name} joined after the plan began and is not included: ${cause}; ${todo}`,
  );
}

/** Returns a clause that says why the node is left out; undefined if it is included. */
function causeToLeaveOut(
  context: DecisionContext,
  places: readonly JoinedTarget[],
): string | undefined {
  const { snapshot, policy } = context;
  const { rollout } = snapshot;
  // A new controller would join too late. No worker may start before all controllers, but workers may have started
  // already, or may start in this turn.
  if (places.some(({ role }) => role === 'controller'))
    return 'controllers are never added to a plan that runs';
  if (policy.includesNew !== true)
    return 'a plan keeps the nodes that it started with, unless newNodes of its policy is Include';
  for (const { stage: id, target, obstacle } of places) {
    if (obstacle !== undefined) return obstacle;
    const stage = rollout.stages.find((each) => each.id === id);
    if (stage === undefined) return 'the plan no longer has the command of this node';
    if (passedStages(rollout).has(id))
      return `a later stage than the ${shownRole(stage)}s of spec.commands[${stage.command}] has begun`;
    const verdict = evaluate(
      BEFORE_ROLLOUT,
      gateInput({ ...context, stage, target }, freeSlots(stage)),
    );
    if (verdict.kind !== 'pass') return verdict.reason.message;
  }
  return undefined;
}

/** Returns the ids of the stages before the last stage that has begun. */
const passedStages = onceForEach(({ stages }: Pick<Rollout, 'stages'>): ReadonlySet<string> => {
  const last = stages.findLastIndex(({ targets }) =>
    targets.some(({ state }) => state !== 'pending'),
  );
  return new Set(stages.slice(0, Math.max(0, last)).map(({ id }) => id));
});
