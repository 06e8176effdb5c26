/** Owns the effects of a decision: writes with preconditions, each harmless when it is repeated. */
import type { Drains } from '../../drain/drains.ts';
import type { KubeClient } from '../../kube/client.ts';
import { nodes } from '../../kube/resources.ts';
import { isAlreadyExists, isConflict, isNotFound } from '../../kube/status-error.ts';
import type { KubeObject, Node } from '../../kube/types.ts';
import { settleAll } from '../../util/settle.ts';
import type { Dialect, Instruction, Split, World } from '../dialect.ts';
import { factsOf } from '../gates/context.ts';
import { ownerOf } from '../model/cordon-owners.ts';
import type { NodeAction, Signalling } from '../model/decided.ts';
import type { Snapshot } from '../model/observed.ts';
import type { Rollout, Target } from '../model/recorded.ts';
import type { OwnWrites } from '../observe/own-writes.ts';
import { instructionsFor } from './node-action-writes.ts';
import { areNotYetSignalled } from './release.ts';
import { areUnchanged, restingOn } from './status-shards.ts';

export interface Effects<P extends KubeObject> {
  readonly dialect: Dialect<P>;
  readonly client: KubeClient;
  readonly ownWrites: OwnWrites;
  /** Nothing is drained where absent. */
  readonly drains?: Drains | undefined;
  /** Ends every request when it aborts. */
  readonly abort?: AbortSignal | undefined;
}

/**
 * False where the plan, or an object that has to be finished first, is not as it was seen: nothing is recorded then.
 * `now` in milliseconds is the time of the record.
 */
export async function record<P extends KubeObject>(
  effects: Effects<P>,
  world: World,
  plan: P,
  before: Rollout,
  after: Rollout,
  now: number,
): Promise<boolean> {
  const { dialect } = effects;
  if (!(await areNotYetSignalled(effects, world, plan, before, after))) return false;
  for (const instruction of finishing(dialect, world, plan, before, after)) {
    if (!(await carryOut(effects, instruction))) return false;
  }
  const projected = dialect.project(after, plan, now);
  const split = dialect.shards?.split(plan, projected, world, now) ?? { plan: projected, writes: [] };
  if (!(await writeShards(effects, world, plan, split, restingOn(before, after)))) return false;
  return await writePlan(effects, split);
}

/**
 * Status shards first: what ends is never in neither. Their versions say nothing about the plan, nor does its version about them:
 * so the plan is asked for past all caches before a status shard is written, and status shards that the record rests on before it.
 */
async function writeShards<P extends KubeObject>(
  effects: Effects<P>,
  world: World,
  plan: P,
  { writes }: Split<P>,
  targets: readonly Target[],
): Promise<boolean> {
  const { dialect, client, abort } = effects;
  const holding = dialect.shards?.holding(plan, targets, world) ?? [];
  const basis = writes.length > 0 ? [{ resource: dialect.plans, object: plan }, ...holding] : holding;
  if (!(await areUnchanged(client, basis, abort))) return false;
  const written = await settleAll(writes.map(async (instruction) => await carryOut(effects, instruction)));
  return written.every(Boolean);
}

async function writePlan<P extends KubeObject>(
  { dialect, client, ownWrites, abort }: Effects<P>,
  { plan, counted }: Split<P>,
): Promise<boolean> {
  const options = { abort, ...(dialect.recordedIn === 'status' ? { subresource: 'status' } : {}) };
  try {
    const { metadata } = counted ? await client.replace(dialect.plans, counted, { abort }) : plan;
    ownWrites.remember(dialect.plans, await client.replace(dialect.plans, { ...plan, metadata }, options));
    return true;
  } catch (error) {
    if (isConflict(error) || isNotFound(error)) return false;
    throw error;
  }
}

function finishing<P extends KubeObject>(
  { signal }: Dialect<P>,
  world: World,
  plan: P,
  before: Rollout,
  after: Rollout,
): Instruction[] {
  const done = new Set(
    before.stages.flatMap(({ targets }) => targets.filter(({ state }) => state === 'done').map(({ key }) => key)),
  );
  return after.stages.flatMap((stage) =>
    stage.targets
      .filter(({ state, key }) => state === 'done' && !done.has(key))
      .flatMap((target) => signal.finish?.(world, after, stage, target, plan) ?? []),
  );
}

export interface Sent {
  readonly signalling: Signalling;
  readonly result: 'written' | 'outdated';
}

/** Signals that are under way at once: enough to keep a server busy, and soon enough over for the look at the plan to hold. */
const SIGNALS_AT_ONCE = 100;

/**
 * Writes signals, each on its object exactly as it was seen: where that has changed since, nothing is written, the change
 * arrives by the watch, and the decision is taken again.
 *
 * An object at the version that was seen says nothing about the plan: a cache may show an old plan and a new object, such
 * as one that a later command has signalled. So the plan, with the status shards of the targets, is asked for once more, past
 * all caches, between the look at the objects and the writes. Where it still is as decided on, nobody can have signalled
 * an object that is still as seen.
 */
export async function send<P extends KubeObject>(
  effects: Effects<P>,
  world: World,
  plan: P,
  rollout: Rollout,
  signals: readonly Signalling[],
): Promise<Sent[]> {
  const sent: Sent[] = [];
  for (let first = 0; first < signals.length; first += SIGNALS_AT_ONCE) {
    const batch = signals.slice(first, first + SIGNALS_AT_ONCE);
    sent.push(...(await sendTogether(effects, world, plan, rollout, batch)));
  }
  return sent;
}

async function sendTogether<P extends KubeObject>(
  effects: Effects<P>,
  world: World,
  plan: P,
  rollout: Rollout,
  signals: readonly Signalling[],
): Promise<Sent[]> {
  const { dialect } = effects;
  const prepared = signals.map((signalling) => ({
    signalling,
    instruction: dialect.signal.send(world, rollout, signalling, plan),
  }));
  const targets = signals.map(({ target }) => target);
  const isAsSeen = await isCurrent(effects, world, plan, targets);
  return await settleAll(
    prepared.map(async ({ signalling, instruction }): Promise<Sent> => {
      const isWritten = isAsSeen && instruction !== undefined && (await carryOut(effects, instruction));
      return { signalling, result: isWritten ? 'written' : 'outdated' };
    }),
  );
}

/**
 * Pods are evicted only for as long as the target asks for that: it may fail, or move on by itself, and a node that is let
 * back must keep what comes to it.
 */
export function endIdleDrains({ drains }: Pick<Effects<never>, 'drains'>, snapshot: Snapshot): void {
  for (const target of snapshot.rollout.stages.flatMap(({ targets }) => targets)) {
    const { drain, node, observation } = factsOf(snapshot, target);
    const isAsking = observation.kind === 'working' && observation.waitsFor === 'drain';
    if (drain && node && !(isAsking && target.state === 'intended')) drains?.forget(node.name);
  }
}

/** Node actions that are under way at once: each is a write or two, and a large plan that is aborted has thousands. */
const NODE_ACTIONS_AT_ONCE = 100;

/** Node actions that rest on one look at the plan. */
export interface NodeActionBatch {
  readonly nodeActions: readonly NodeAction[];
  /** True where anything was done that the next decision may hang on; `onDone` hears of each node action that was. */
  run(onDone: (nodeAction: NodeAction) => void): Promise<boolean>;
}

/**
 * To be run in this order, each only where the plan is still as it was decided on; `now` in ms is told to the targets. All
 * are prepared here: each meets its object as it is now, however late its turn comes.
 */
export function prepareNodeActions<P extends KubeObject>(
  effects: Effects<P>,
  world: World,
  rollout: Rollout,
  nodeActions: readonly NodeAction[],
  now: number,
): NodeActionBatch[] {
  const prepared = nodeActions.map((nodeAction) => ({
    nodeAction,
    run: prepareNodeAction(effects, world, rollout, nodeAction, now),
  }));
  return Array.from({ length: Math.ceil(nodeActions.length / NODE_ACTIONS_AT_ONCE) }, (_, index) => {
    const [first, end] = [index * NODE_ACTIONS_AT_ONCE, (index + 1) * NODE_ACTIONS_AT_ONCE];
    const slice = prepared.slice(first, end);
    const run: NodeActionBatch['run'] = async (onDone) => {
      const running = slice.map(async (each) => {
        const isDone = await each.run();
        if (isDone) onDone(each.nodeAction);
        return isDone;
      });
      return (await settleAll(running)).includes(true);
    };
    return { nodeActions: slice.map(({ nodeAction }) => nodeAction), run };
  });
}

function prepareNodeAction<P extends KubeObject>(
  effects: Effects<P>,
  world: World,
  rollout: Rollout,
  nodeAction: NodeAction,
  now: number,
): () => Promise<boolean> {
  if (nodeAction.kind === 'drain') {
    const object = world.get(nodes, nodeAction.node);
    return async () => object !== undefined && (await beginDrain(effects, rollout, nodeAction, object));
  }
  const isEnd =
    nodeAction.kind === 'acknowledge' ||
    nodeAction.kind === 'cancel' ||
    (nodeAction.kind === 'clean-up' && nodeAction.cordon);
  const instructions = instructionsFor(effects.dialect, world, rollout, nodeAction, now);
  return async () => {
    if (isEnd && nodeAction.node !== undefined) effects.drains?.forget(nodeAction.node);
    // One after the other: the second is right only once the first is done.
    for (const instruction of instructions) {
      if (!(await carryOut(effects, instruction))) return false;
    }
    return instructions.length > 0;
  };
}

/** A cache may show the cordon of a node that has been let back since: pods are evicted from none that is open. */
async function beginDrain<P extends KubeObject>(
  { client, drains, abort }: Effects<P>,
  rollout: Rollout,
  { node, target, options }: Extract<NodeAction, { kind: 'drain' }>,
  object: Node,
): Promise<boolean> {
  if (!drains || !(await areUnchanged(client, [{ resource: nodes, object }], abort))) return false;
  const owner = ownerOf(rollout, target);
  drains.begin(node, owner, options);
  return drains.stateOf(node, owner) !== undefined;
}

/** Asks past all caches whether the plan, and the status shards of those targets, are still as they were decided on. */
export async function isCurrent<P extends KubeObject>(
  { dialect, client, abort }: Effects<P>,
  world: World,
  plan: P,
  targets: readonly Target[],
): Promise<boolean> {
  const holding = dialect.shards?.holding(plan, targets, world) ?? [];
  return await areUnchanged(client, [{ resource: dialect.plans, object: plan }, ...holding], abort);
}

/** False where the object is not as it was seen any more. */
async function carryOut<P extends KubeObject>(effects: Effects<P>, instruction: Instruction): Promise<boolean> {
  if (instruction.kind === 'begin') {
    await instruction.begin();
    return true;
  }
  const { client, ownWrites, abort } = effects;
  const { kind, resource, object } = instruction;
  try {
    const write =
      kind === 'create' ? client.create(resource, object, { abort }) : client.replace(resource, object, { abort });
    ownWrites.remember(resource, await write);
    return true;
  } catch (error) {
    if (kind === 'create' && isAlreadyExists(error)) return true;
    if (isConflict(error) || isNotFound(error)) return false;
    throw error;
  }
}
