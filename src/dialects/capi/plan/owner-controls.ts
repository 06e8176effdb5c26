/**
 * Keeps what people ask of the plan of an owner: pause, abort, retry and an opened window. The Node that represents the plan
 * holds these annotations, and the Nodes that represent it next hold copies. A kubelet can change the annotations of its own
 * Node, so a seal proves that Refit wrote them.
 */
import { hash } from 'node:crypto';
import type { Instruction } from '../../../engine/contract/signal.ts';
import type { World } from '../../../engine/contract/world.ts';
import {
  ABORT_ANNOTATION,
  ATTEMPTS_ANNOTATION,
  OPEN_WINDOW_ANNOTATION,
  PAUSE_ANNOTATION,
  RETRY_ANNOTATION,
  RETRY_HOOKS_ANNOTATION,
} from '../../../engine/model/controls.ts';
import { annotated, type Node, nodes, withoutAnnotations } from '../../../kube/resources.ts';
import { ownMember } from '../../../util/own-member.ts';
import { groupOf } from './machine-groups.ts';
import { type MachineUpdate, updateOn } from './machine-update.ts';
import { CONTROLS_SEAL, digestOf, sealOn, withSeal } from './seals.ts';

/** What lets a plan go on. It counts only with the seal. */
const LIFTING = [
  RETRY_ANNOTATION,
  RETRY_HOOKS_ANNOTATION,
  ATTEMPTS_ANNOTATION,
  OPEN_WINDOW_ANNOTATION,
];
/** What stops a plan. Anybody who may write the Node may set it. If Refit has set it, only Refit may remove it. */
const STOPPING = { paused: PAUSE_ANNOTATION, aborted: ABORT_ANNOTATION } as const;
const CONTROLS = [...Object.values(STOPPING), ...LIFTING];
/** The value of the seal in place of a digest, if nothing lets the plan go on. */
const NOTHING = 'none';
/** The value of a pause or an abort that somebody has removed. */
const REMOVED = 'somebody removed the annotation that said why';

type Owner = Pick<NonNullable<MachineUpdate['owner']>, 'uid'>;

/** The words of the seal for what stops a plan. */
const STOPS = ['paused', 'aborted'] as const satisfies readonly (keyof typeof STOPPING)[];

/** Returns the words for what the annotations of the Node stop. */
function stopsOn({ metadata: { annotations } }: Node): readonly string[] {
  return STOPS.filter((word) => ownMember(annotations, STOPPING[word]) !== undefined);
}

/**
 * Returns the value of the seal for what the Node holds of this owner. Each Node with a request has a seal, because a kubelet can make
 * Cluster API remove labels: the annotation `cluster.x-k8s.io/labels-from-machine` lists labels that Cluster API removes.
 */
function sealFor(node: Node, owner: Owner): string {
  return [wordFor(owner), ...stopsOn(node), digestOf(node, LIFTING) ?? NOTHING].join('.');
}

/** Returns the first word of the seal, which says whose plan is controlled. */
function wordFor({ uid }: Owner): string {
  return hash('sha256', uid).slice(0, 8);
}

/** Returns the Node with the seal for what it holds of this owner. */
function withControlsSeal(node: Node, owner: Owner): Node {
  return withSeal(node, CONTROLS_SEAL, sealFor(node, owner));
}

/**
 * Returns true if Refit paused or aborted a plan of this owner, and the Node that says so has no valid request any more. Its
 * kubelet may have spoiled the request, which must not end the pause.
 */
export function isStoppedBefore(all: readonly Node[], owner: Owner): boolean {
  return all.some((node) => {
    const [first, ...parts] = sealOn(node, CONTROLS_SEAL)?.split('.') ?? [];
    const isStopped = STOPS.some((word) => parts.includes(word));
    return first === wordFor(owner) && isStopped && updateOn(node) === undefined;
  });
}

/**
 * Returns true if Refit wrote what lets the plan go on, and if nothing that stops the plan was removed by somebody else. A
 * pause or an abort that somebody added with kubectl counts.
 */
export function areControlsSealed(node: Node): boolean {
  return changedControls(node).length === 0;
}

/**
 * Returns the keys of the annotations that somebody else has written or removed; empty if there are none. If the digest is
 * wrong, each annotation that it covers may be the one. If the seal is gone, each annotation may be the one.
 */
export function changedControls(node: Node): string[] {
  const seal = sealOn(node, CONTROLS_SEAL);
  if (seal === undefined) return [CONTROLS_SEAL];
  const parts = seal.split('.');
  const present = stopsOn(node);
  const removed = STOPS.filter((word) => parts.includes(word) && !present.includes(word));
  const isDigestRight = parts.at(-1) === (digestOf(node, LIFTING) ?? NOTHING);
  const lifts = LIFTING.filter((key) => ownMember(node.metadata.annotations, key) !== undefined);
  const suspect = lifts.length > 0 ? lifts : LIFTING;
  return [...removed.map((word) => STOPPING[word]), ...(isDigestRight ? [] : suspect)];
}

/**
 * Returns the Node with the seal for its controls, if it represents the plan of an owner. `before` is the Node without the
 * change that is about to be written. What lets the plan go on, and what Refit did not write, is removed.
 */
export function sealed(node: Node, before: Node): Node {
  const { owner } = updateOn(before) ?? {};
  if (owner === undefined) return node;
  const valueOn = ({ metadata: { annotations } }: Node, key: string) => ownMember(annotations, key);
  const unproved = areControlsSealed(before)
    ? []
    : LIFTING.filter((key) => valueOn(node, key) === valueOn(before, key));
  return withControlsSeal(withoutAnnotations(node, ...unproved), owner);
}

/**
 * Returns the Node with what Refit has written to control the plan of its owner: without what somebody else has added to let
 * the plan go on, and with the pause or the abort that somebody else has removed.
 */
export function proved(node: Node): Node {
  if (updateOn(node)?.owner === undefined || areControlsSealed(node)) return node;
  return withStops(withoutAnnotations(node, ...LIFTING), node);
}

/** Returns the Node with what stops the plan that the other Node represents, also if somebody else has removed that there. */
function withStops(node: Node, plan: Node): Node {
  const parts = sealOn(plan, CONTROLS_SEAL)?.split('.');
  const stops = STOPS.flatMap((word) => {
    const known = ownMember(plan.metadata.annotations, STOPPING[word]);
    const isLost = known === undefined && parts?.includes(word) === true;
    const value = isLost ? REMOVED : known;
    return value === undefined ? [] : [[STOPPING[word], value] as const];
  });
  // Without its seal, nobody knows whether the plan was stopped.
  const unknown = parts === undefined && stops.length === 0 ? { [PAUSE_ANNOTATION]: REMOVED } : {};
  return annotated(node, { ...unknown, ...Object.fromEntries(stops) });
}

/**
 * Returns the Node with the controls of the Node that represents the plan, so that they stay if another Node represents it
 * later. If somebody else has changed these controls, the Node gets only what stops the plan. Returns the same object if
 * nothing changes.
 */
export function withControlsOf(node: Node, plan: Node, owner: Owner): Node {
  if (!areControlsSealed(plan))
    return withControlsSeal(withStops(withoutAnnotations(node, ...CONTROLS), plan), owner);
  const { annotations = {} } = plan.metadata;
  const own = node.metadata.annotations ?? {};
  const isSame =
    CONTROLS.every((key) => ownMember(own, key) === ownMember(annotations, key)) &&
    sealOn(node, CONTROLS_SEAL) === sealFor(node, owner);
  if (isSame) return node;
  const kept = CONTROLS.flatMap((key) => {
    const value = ownMember(annotations, key);
    return value === undefined ? [] : [[key, value] as const];
  });
  return withControlsSeal(
    annotated(withoutAnnotations(node, ...CONTROLS), Object.fromEntries(kept)),
    owner,
  );
}

/**
 * Returns the Node for the first request of a rollout. A pause of the earlier plan of the owner stays until `refit resume`,
 * also if somebody else has removed it.
 */
export function withPauseOf(node: Node, plan: Node, owner: Owner): Node {
  return withOnlyPause(node, pauseOn(withStops(plan, plan)), owner);
}

function pauseOn({ metadata: { annotations } }: Node): string | undefined {
  return ownMember(annotations, PAUSE_ANNOTATION);
}

function withOnlyPause(node: Node, pause: string | undefined, owner: Owner): Node {
  const rest = withoutAnnotations(node, ...CONTROLS);
  const held = pause === undefined ? rest : annotated(rest, { [PAUSE_ANNOTATION]: pause });
  return withControlsSeal(held, owner);
}

/**
 * Returns the Node for the first request of an owner that has no plan. A pause on the Node itself stays until `refit resume`.
 * `isStopped` says that an earlier plan of the owner was paused or aborted, so the plan begins with a pause.
 */
export function withoutOwnControls(node: Node, owner: Owner, isStopped: boolean): Node {
  return withOnlyPause(node, pauseOn(node) ?? (isStopped ? REMOVED : undefined), owner);
}

/**
 * The most Nodes besides the first one that hold the controls and the failures of a plan. If the first Node is deleted,
 * the next one represents the plan.
 */
export const MOST_COPIES = 5;

/** Returns the writes that copy the controls of a plan to the Nodes that represent it next. */
export function copies(plan: Node, world: Pick<World, 'list'>): Instruction[] {
  // What nobody has proved is not copied. The plan waits until somebody decides.
  if (!areControlsSealed(plan)) return [];
  const { owner } = updateOn(plan) ?? {};
  if (owner === undefined) return [];
  const [, ...others] = groupOf(world.list(nodes), plan)?.chosen ?? [];
  return others.slice(0, MOST_COPIES).flatMap(({ node }): Instruction[] => {
    const object = withControlsOf(node, plan, owner);
    return object === node ? [] : [{ kind: 'replace', resource: nodes, object }];
  });
}
