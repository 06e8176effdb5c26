/**
 * Claims Nodes for a plan. Also removes from Nodes what plans have left there: claims, marks for other tools and
 * lifecycle conditions. If two plans claim Nodes at the same time, in one process or in two processes, at least one of
 * the plans observes the claim of the other plan before it starts.
 */

import { marksOn, withoutMarks } from '../../coordination/node-marks.ts';
import { lifecycleChange, lifecycleOn } from '../../drain/lifecycle-conditions.ts';
import { type KubeObject, keyOf, type Node, nodes } from '../../kube/resources.ts';
import { isOfObject } from '../../kube/status-error.ts';
import { claimOn, otherClaimantOn, withClaim, withoutClaim } from '../../signal/at-work.ts';
import { unlessError } from '../../util/errors.ts';
import { onceForEach } from '../../util/memo.ts';
import { needsClaim } from '../assess/claims.ts';
import { claimantOf, plansAmong } from '../contract/plan-objects.ts';
import type { Instruction } from '../contract/signal.ts';
import {
  isFinal,
  RECORDED_STATES,
  type RecordedState,
  type Rollout,
  targetsIn,
} from '../model/rollout.ts';
import { kindOf } from '../snapshot/world.ts';
import { announce } from './run-node-actions.ts';
import { type Accompanying, carryOut, type Effects, type RecordChange } from './writes.ts';

type Knowledge = Pick<Effects, 'dialect' | 'world' | 'refusals'>;

/**
 * Returns the writes that claim the Nodes of intended targets for this plan. If another plan has claimed a Node, its
 * claim is not replaced, and the target waits.
 */
export function claimsFor(on: Knowledge, { plan, policy, after }: RecordChange): Accompanying[] {
  const { dialect, refusals } = on;
  const claim = claimantOf(dialect, plan);
  // This plan waits for the plan that `awaits` names. That plan may need all the Nodes that maxUnavailable still
  // allows. So this plan claims no Node.
  if (policy.maxUnavailable && dialect.nodeSharing?.awaits?.(plan, on.world) !== undefined)
    return [];
  return claimable(on, after, 'intended').flatMap(({ node, ...at }) => {
    const isClaimed = claimOn(node) === claim || otherClaimantOn(node, plan) !== undefined;
    const isNeeded = needsClaim({ claimNeed: dialect.nodeSharing?.claims?.needOf(node) }, policy);
    if (isClaimed || !isNeeded || refusals?.of(after, at.target)) return [];
    // `mayLack` is set because, if the API server refuses the claim, the target waits in any case.
    return { ...at, instruction: replaced(withClaim(node, claim)), mayLack: true };
  });
}

function claimable(
  { dialect, world }: Knowledge,
  { stages }: Rollout,
  ...states: readonly RecordedState[]
) {
  return stages.flatMap((stage) =>
    targetsIn({ stages: [stage] }, ...states).flatMap((target) => {
      const node = dialect.drainDelegation?.nodeOf(stage, target, world);
      return node ? [{ stage, target, node }] : [];
    }),
  );
}

const replaced = (object: Node): Instruction => ({ kind: 'replace', resource: nodes, object });

/** An entry for a Node on which a plan has left its claim, its marks or its lifecycle conditions. */
export interface LeftOnNode {
  readonly node: Node;
  /** The plan, as its claim names it: `<dialect>/<namespace>/<name>/<uid>`. */
  readonly owner: string;
}

/** Returns the claims of deleted plans, and the claims of the plan with this key on Nodes that the plan does not work on. */
export function claimsLeft(
  on: Knowledge,
  plans: readonly KubeObject[],
  key: string,
  now: number,
): readonly LeftOnNode[] {
  if (!on.dialect.nodeSharing?.claims) return [];
  return leftBehind(on, claimedAmong, plans, key, (plan) => wantedBy(on, plan, now));
}

/**
 * Returns the marks for other tools that deleted plans have set. Also returns the marks of the plan with this key, if
 * they are on Nodes on which the plan does not work.
 */
export function marksLeft(
  on: Knowledge,
  plans: readonly KubeObject[],
  key: string,
  now: number,
): readonly LeftOnNode[] {
  return leftBehind(on, markedAmong, plans, key, (plan) => wantedBy(on, plan, now));
}

/**
 * Returns the lifecycle conditions of deleted plans. Also returns the conditions of the plan with this key, if they are
 * on Nodes that the plan no longer lists. On the Nodes that a plan lists, the turns of the plan clear the conditions.
 */
export function conditionsLeft(
  on: Knowledge,
  plans: readonly KubeObject[],
  key: string,
  now: number,
): readonly LeftOnNode[] {
  return leftBehind(on, announcedAmong, plans, key, (plan) => listedIn(on, plan, now));
}

/**
 * Returns what plans of the dialect have left on Nodes: everything that deleted plans have left, and what the plan with
 * this key has left on Nodes that it does not need. The result contains nothing that other plans have left, and nothing
 * on Nodes where work is in progress.
 */
function leftBehind(
  { dialect, world }: Knowledge,
  findIn: (all: readonly Node[]) => readonly LeftOnNode[],
  plans: readonly KubeObject[],
  key: string,
  wantedFor: (plan: KubeObject) => (node: Node) => boolean,
): readonly LeftOnNode[] {
  if (!watchesNodes(dialect)) return [];
  const { planObjects = {} } = dialect;
  const whose = planObjects.referenceOf
    ? `${dialect.name}/`
    : `${dialect.name}/${planObjects.namespace ?? ''}/`;
  const found = findIn(world.list(nodes)).filter(({ owner }) => owner.startsWith(whose));
  // Usually nothing is left on Nodes. In this case no plan has to be resolved.
  if (found.length === 0) return found;
  const wanted = new Map(
    plansAmong(dialect, plans).map((plan) => [
      claimantOf(dialect, plan),
      keyOf(plan) === key ? wantedFor(plan) : () => true,
    ]),
  );
  return found.filter(
    ({ node, owner }) =>
      wanted.get(owner)?.(node) !== true &&
      dialect.nodeSharing?.claims?.isAtWork(world, node) !== true,
  );
}

/**
 * Returns a function that says whether the plan needs the claim on a Node. A plan needs the claim for targets whose
 * work is in progress, even if they are recorded as failed, and for targets that are about to start. A plan whose
 * record cannot be read needs all its claims.
 */
function wantedBy(on: Knowledge, plan: KubeObject, now: number): (node: Node) => boolean {
  const { dialect, world, refusals } = on;
  const rollout = dialect.resolve(plan, world, now);
  const names = claimable(on, rollout, 'intended', 'failed').map(({ stage, target, node }) => {
    const { kind } = dialect.signal.read(world, rollout, stage, target, plan);
    const isAboutToStart =
      target.state === 'intended' && !isFinal(rollout) && !refusals?.of(rollout, target);
    return isAboutToStart || kind === 'sent' || kind === 'working' ? node.metadata.name : undefined;
  });
  return ({ metadata }) => rollout.unread !== undefined || names.includes(metadata.name);
}

/** Returns a function that says whether the plan lists the Node. A plan whose record cannot be read lists every Node. */
function listedIn(on: Knowledge, plan: KubeObject, now: number): (node: Node) => boolean {
  const rollout = on.dialect.resolve(plan, on.world, now);
  const listed = claimable(on, rollout, ...RECORDED_STATES);
  const names = new Set(listed.map(({ node }) => node.metadata.name));
  return ({ metadata }) => rollout.unread !== undefined || names.has(metadata.name);
}

function watchesNodes({ watched }: Knowledge['dialect']): boolean {
  return watched.some(({ resource }) => kindOf(resource) === kindOf(nodes));
}

/**
 * Returns a function that searches a list of Nodes for Nodes on which plans have left something. The result has one
 * entry for each Node and owner. Each list is searched only once.
 */
function ownersAmong(of: (node: Node) => readonly { readonly owner?: string | undefined }[]) {
  return onceForEach((all: readonly Node[]): readonly LeftOnNode[] =>
    all.flatMap((node) => {
      const owners = new Set(of(node).flatMap(({ owner }) => owner ?? []));
      return [...owners].map((owner) => ({ node, owner }));
    }),
  );
}

const claimedAmong = ownersAmong((node) => [{ owner: claimOn(node) }]);
const markedAmong = ownersAmong(marksOn);
const announcedAmong = ownersAmong(lifecycleOn);

/**
 * Removes the claim of the owner from a Node. Resolves with false if the API server refused the write. If the Node has changed, nothing is
 * written, and the next clean-up tries again.
 */
export async function dropClaim(effects: Effects, { node, owner }: LeftOnNode): Promise<boolean> {
  return await isAccepted(carryOut(effects, replaced(withoutClaim(node, owner))));
}

/** Removes the marks of one owner from a Node. The result has the same meaning as the result of `dropClaim`. */
export async function dropMarks(effects: Effects, { node, owner }: LeftOnNode): Promise<boolean> {
  return await isAccepted(carryOut(effects, replaced(withoutMarks(node, owner))));
}

/**
 * Clears the lifecycle conditions of one owner on a Node. The result has the same meaning as the result of `dropClaim`.
 */
export async function dropConditions(
  effects: Effects,
  { node, owner }: LeftOnNode,
  now: number,
): Promise<boolean> {
  const change = lifecycleChange(lifecycleOn(node), owner, []);
  return await isAccepted(announce(effects, node, { owner, change }, now));
}

/** Resolves with false if the API server refuses the write of this object. */
async function isAccepted(write: Promise<boolean>): Promise<boolean> {
  return (await unlessError(isOfObject)(write)) !== undefined;
}
