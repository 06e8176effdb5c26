/** Carries out node actions: cordon, drain, uncordon, taint, acknowledge, cancel and clean up. */
import { withMarks } from '../../coordination/node-marks.ts';
import * as marks from '../../drain/cordon-marks.ts';
import { lifecyclePatch } from '../../drain/lifecycle-conditions.ts';
import { type Node, nodes } from '../../kube/resources.ts';
import { isConflict, isNotFound, isOfObject } from '../../kube/status-error.ts';
import { settleAll } from '../../util/waits.ts';
import type { Instruction } from '../contract/signal.ts';
import { type DecisionContext, factsOf } from '../gates/types.ts';
import type { NodeAction } from '../model/decision.ts';
import {
  isOwnedBy,
  ownerOf,
  pendingOwnerOf,
  type Rollout,
  type Target,
  targetsIn,
} from '../model/rollout.ts';
import { areUnchanged, carryOut, type Effects } from './writes.ts';

/**
 * The maximum number of node actions in one batch. Each node action takes one or two writes, and the abort of a large
 * plan needs thousands of node actions.
 */
const NODE_ACTIONS_AT_ONCE = 100;

export interface NodeActionHooks {
  /** Resolves with false if the plan has changed. Then no further batch runs. */
  readonly isCurrent: (targets: readonly Target[]) => Promise<boolean>;
  readonly onDone: (nodeAction: NodeAction) => void;
  /** Called with the message of the API server if it refuses a node action. The other node actions are still carried out. */
  readonly onRefused: (nodeAction: NodeAction, words: string) => void;
}

/**
 * The data that all functions for node actions need: the rollout, the time, and the way to write. `now` is in
 * milliseconds.
 */
interface Scene extends Effects {
  readonly rollout: Rollout;
  readonly now: number;
}

/**
 * Carries out the node actions in batches, and checks the plan before each batch. All writes are prepared first, with
 * the resourceVersions that the decision has read. So if an object changes while earlier batches run, the write of this
 * object ends in a conflict.
 */
export async function runNodeActions(
  scene: Scene,
  nodeActions: readonly NodeAction[],
  hooks: NodeActionHooks,
) {
  const { isCurrent, onDone, onRefused } = hooks;
  const prepared = nodeActions.map((nodeAction) => ({
    nodeAction,
    run: prepareNodeAction(scene, nodeAction),
  }));
  for (let first = 0; first < prepared.length; first += NODE_ACTIONS_AT_ONCE) {
    const batch = prepared.slice(first, first + NODE_ACTIONS_AT_ONCE);
    if (!(await isCurrent(batch.map(({ nodeAction }) => nodeAction.target)))) return;
    const running = batch.map(async ({ nodeAction, run }) => {
      try {
        if (await run()) onDone(nodeAction);
      } catch (error) {
        if (!isOfObject(error)) throw error;
        onRefused(nodeAction, error.message);
      }
    });
    await settleAll(running);
  }
}

function prepareNodeAction(scene: Scene, nodeAction: NodeAction): () => Promise<boolean> {
  if (nodeAction.kind === 'drain') {
    const object = scene.world.get(nodes, nodeAction.node);
    return async () => object !== undefined && (await beginDrain(scene, nodeAction, object));
  }
  if (nodeAction.kind === 'announce') {
    const object = scene.world.get(nodes, nodeAction.node);
    return async () =>
      object !== undefined && (await announce(scene, object, nodeAction, scene.now));
  }
  const uncordons =
    (nodeAction.kind === 'acknowledge' && nodeAction.uncordon !== undefined) ||
    nodeAction.kind === 'cancel' ||
    (nodeAction.kind === 'clean-up' && nodeAction.cordon);
  const instructions = instructionsFor(scene, nodeAction).filter((each) => each !== undefined);
  return async () => {
    // Pods may only be evicted from a cordoned node, so the drain must end before the uncordon is written.
    if (uncordons && nodeAction.node !== undefined) await scene.drains?.forget(nodeAction.node);
    // The writes are made one after another, because each write is correct only if the previous write succeeded.
    for (const instruction of instructions) if (!(await carryOut(scene, instruction))) return false;
    return instructions.length > 0;
  };
}

type Announcement = Extract<NodeAction, { kind: 'announce' }>;

/** Writes the lifecycle conditions of a Node. Resolves with false if the Node has changed since it was observed. */
export async function announce(
  { client, ownWrites, abort }: Pick<Effects, 'client' | 'ownWrites' | 'abort'>,
  object: Node,
  { owner, change }: Pick<Announcement, 'owner' | 'change'>,
  now: number,
): Promise<boolean> {
  const patch = lifecyclePatch(object, owner, change, now);
  const options = { type: 'strategic', subresource: 'status', abort } as const;
  try {
    ownWrites.remember(nodes, await client.patch(nodes, object.metadata.name, patch, options));
    return true;
  } catch (error) {
    if (isConflict(error) || isNotFound(error)) return false;
    throw error;
  }
}

type DrainAction = Extract<NodeAction, { kind: 'drain' }>;

/**
 * Starts the drain of a node if the Node is unchanged at the API server. A cache may still show the cordon of a node that was
 * uncordoned since, and pods may only be evicted from a cordoned node.
 */
async function beginDrain(
  scene: Scene,
  { node, target, options }: DrainAction,
  object: Node,
): Promise<boolean> {
  const { drains, rollout } = scene;
  if (!drains || !(await areUnchanged(scene, [{ resource: nodes, object }]))) return false;
  const owner = ownerOf(rollout, target);
  drains.begin(node, owner, options);
  return drains.stateOf(node, owner) !== undefined;
}

/**
 * Ends the drains of this rollout that no target needs any more. For example, the target has failed, or its Node was
 * deleted. If a node is not cordoned, its pods must stay.
 */
export function endIdleDrains(
  { drains }: Pick<Effects, 'drains'>,
  { snapshot, policy }: DecisionContext,
): void {
  const inProgress = targetsIn(snapshot.rollout, 'intended').map((target) =>
    factsOf(snapshot, target),
  );
  const wanted = inProgress.flatMap(({ node, observation }) => {
    const isAsking = observation.kind === 'working' && observation.waitsFor === 'drain';
    return node && isAsking && policy.heldBy === undefined ? node.name : [];
  });
  drains?.keep((node, owner) => wanted.includes(node) || !isOwnedBy(snapshot.rollout, owner));
}

/** Returns the writes that carry out a node action, with as few writes as possible. */
function instructionsFor(
  scene: Scene,
  nodeAction: Exclude<NodeAction, DrainAction | Announcement>,
): (Instruction | undefined)[] {
  const { dialect, world, rollout, now } = scene;
  const { signal } = dialect;
  const { stage, target, kind } = nodeAction;
  const node = nodeAction.node === undefined ? undefined : world.get(nodes, nodeAction.node);
  const pending = pendingOwnerOf(rollout.source);
  switch (kind) {
    case 'cordon':
      return changed(node, (before) => {
        const cordoned = marks.withCordon(
          marks.withoutPendingTaint(before, pending),
          nodeAction.owner,
        );
        return nodeAction.excludes === true ? marks.withExclusion(cordoned) : cordoned;
      });
    case 'taint':
      return changed(node, (before) => marks.withPendingTaint(before, pending));
    case 'protect':
      return changed(node, (before) => withMarks(before, nodeAction.owner, nodeAction.tools));
    case 'clean-up': {
      const uncordon = UNCORDON[nodeAction.cordon ? 'ours' : 'never'];
      return changed(node, (it) =>
        uncordon(nodeAction.taint ? marks.withoutPendingTaint(it, pending) : it),
      );
    }
    case 'keep-report':
      return [signal.keepReport?.(world, rollout, stage, target)];
    case 'prefetch':
      return [signal.downloads?.prefetch(world, rollout, stage, target, nodeAction.agent)];
    case 'check-downloads':
      return [signal.downloads?.check?.(world, rollout, stage, target, nodeAction.agent)];
    case 'end-prefetch':
      return [signal.downloads?.end(world, stage, target, rollout)];
    case 'cancel':
      return [signal.cancel?.(world, rollout, stage, target, nodeAction.reason, now)];
    case 'acknowledge': {
      const uncordon = UNCORDON[nodeAction.uncordon ?? 'never'];
      return uncordonAndAcknowledge(
        node,
        uncordon,
        signal.acknowledge?.(world, rollout, stage, target, now),
      );
    }
  }
}

const UNCORDON = {
  never: (node: Node) => node,
  ours: marks.withoutCordon,
  always: marks.withoutAnyCordon,
};

type Change = (node: Node) => Node;

function changed(node: Node | undefined, change: Change): Instruction[] {
  if (node === undefined) return [];
  const after = change(node);
  return after === node ? [] : [{ kind: 'replace', resource: nodes, object: after }];
}

/**
 * Returns the writes that uncordon the Node and write the acknowledgement. If the acknowledgement is written to the
 * Node itself, one write does both. Otherwise the uncordon is written first.
 */
function uncordonAndAcknowledge(node: Node | undefined, uncordon: Change, answer?: Instruction) {
  const isSame =
    answer?.kind === 'replace' &&
    answer.resource === nodes &&
    answer.object.metadata.name === node?.metadata.name;
  if (isSame) return [{ ...answer, object: uncordon(answer.object) }];
  return [...changed(node, uncordon), answer];
}
