/**
 * Keeps what people ask of the plan of an owner: pause, abort, retry and an opened window. The Node that represents the plan
 * holds these annotations, and the Nodes that represent it next hold copies. A kubelet can change the annotations of its own
 * Node, so a seal proves that Refit wrote them.
 */
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
import { updateOn } from './machine-update.ts';
import { CONTROLS_SEAL, digestOf, sealOn, withSeal } from './seals.ts';

/** What lets a plan go on. It counts only with the seal. */
const LIFTING = [
  RETRY_ANNOTATION,
  RETRY_HOOKS_ANNOTATION,
  ATTEMPTS_ANNOTATION,
  OPEN_WINDOW_ANNOTATION,
];
/** What stops a plan. Anybody who may write the Node may set it, but only Refit may remove it. */
const STOPPING = { paused: PAUSE_ANNOTATION, aborted: ABORT_ANNOTATION } as const;
const CONTROLS = [...Object.values(STOPPING), ...LIFTING];
/** The value of the seal in place of a digest, if nothing lets the plan go on. */
const NOTHING = 'none';

type Stops = Readonly<Record<keyof typeof STOPPING, boolean>>;

function stopsOn({ metadata: { annotations = {} } }: Node): Stops {
  const has = (key: string): boolean => ownMember(annotations, key) !== undefined;
  return { paused: has(STOPPING.paused), aborted: has(STOPPING.aborted) };
}

/** Returns the value of the seal for what the Node holds; undefined if it holds nothing. */
function sealFor(node: Node): string | undefined {
  const { paused, aborted } = stopsOn(node);
  const lifts = digestOf(node, LIFTING);
  if (!paused && !aborted && lifts === undefined) return undefined;
  return [paused ? 'paused' : [], aborted ? 'aborted' : [], lifts ?? NOTHING].flat().join('.');
}

/** Returns the Node with the seal for what it holds. */
function withControlsSeal(node: Node): Node {
  return withSeal(node, CONTROLS_SEAL, sealFor(node));
}

/**
 * Returns true if Refit wrote what lets the plan go on, and if nothing that stops the plan was removed by somebody else. A
 * pause or an abort that somebody added with kubectl counts.
 */
export function areControlsSealed(node: Node): boolean {
  const parts = sealOn(node, CONTROLS_SEAL)?.split('.') ?? [NOTHING];
  const { paused, aborted } = stopsOn(node);
  const isKept = (word: string, isThere: boolean): boolean => isThere || !parts.includes(word);
  return (
    isKept('paused', paused) &&
    isKept('aborted', aborted) &&
    parts.at(-1) === (digestOf(node, LIFTING) ?? NOTHING)
  );
}

/**
 * Returns the Node with the seal for its controls, if it represents the plan of an owner. `before` is the Node without the
 * change that is about to be written. What lets the plan go on, and what Refit did not write, is removed.
 */
export function sealed(node: Node, before: Node): Node {
  if (updateOn(before)?.owner === undefined) return node;
  if (areControlsSealed(before)) return withControlsSeal(node);
  const valueOn = ({ metadata: { annotations = {} } }: Node, key: string) =>
    ownMember(annotations, key);
  const unproved = LIFTING.filter((key) => valueOn(node, key) === valueOn(before, key));
  return withControlsSeal(withoutAnnotations(node, ...unproved));
}

/**
 * Returns the Node with the controls of the Node that represents the plan, so that they stay if another Node represents it
 * later. If somebody else has changed these controls, the Node only pauses the plan. Returns the same object if nothing
 * changes.
 */
export function withControlsOf(node: Node, plan: Node): Node {
  if (!areControlsSealed(plan)) return withPauseOf(node, plan);
  const { annotations = {} } = plan.metadata;
  const own = node.metadata.annotations ?? {};
  const isSame =
    CONTROLS.every((key) => ownMember(own, key) === ownMember(annotations, key)) &&
    sealOn(node, CONTROLS_SEAL) === sealFor(node);
  if (isSame) return node;
  const kept = CONTROLS.flatMap((key) => {
    const value = ownMember(annotations, key);
    return value === undefined ? [] : [[key, value] as const];
  });
  return withControlsSeal(
    annotated(withoutAnnotations(node, ...CONTROLS), Object.fromEntries(kept)),
  );
}

/**
 * Returns the Node for the first request of a rollout. A pause of the earlier plan of the owner stays until `refit resume`,
 * also if somebody else has removed it.
 */
export function withPauseOf(node: Node, plan: Node): Node {
  const known = ownMember(plan.metadata.annotations, PAUSE_ANNOTATION);
  const pause = known ?? (areControlsSealed(plan) ? undefined : 'true');
  const rest = withoutAnnotations(node, ...CONTROLS);
  return withControlsSeal(
    pause === undefined ? rest : annotated(rest, { [PAUSE_ANNOTATION]: pause }),
  );
}

/** Returns the Node for the first request of an owner that has no plan. A pause on the Node itself stays until `refit resume`. */
export function withoutOwnControls(node: Node): Node {
  return withPauseOf(node, node);
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
  const [, ...others] = groupOf(world.list(nodes), plan)?.chosen ?? [];
  return others.slice(0, MOST_COPIES).flatMap(({ node }): Instruction[] => {
    const object = withControlsOf(node, plan);
    return object === node ? [] : [{ kind: 'replace', resource: nodes, object }];
  });
}
