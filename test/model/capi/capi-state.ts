/** The state of an exploration of Cluster API, and what its invariants read of it. */
import { representing } from '../../../src/dialects/capi/plan/machine-groups.ts';
import {
  recordOf,
  type UpdateRecord,
  updateOn,
} from '../../../src/dialects/capi/plan/machine-update.ts';
import type { Node } from '../../../src/kube/resources.ts';
import { decodeSignal, type SignalData } from '../../../src/signal/annotations.ts';
import { isOver } from '../../../src/signal/at-work.ts';
import type { Drained } from '../deeds.ts';
import type { Contents, NodePast } from '../object-states.ts';
import type { CapiMove } from './capi-objects.ts';

/** What the model remembers of one Machine, and no leader can read. */
export interface MachinePast extends NodePast {
  /** True once Cluster API has chosen the Machine. */
  readonly isChosen: boolean;
  /** True if a person cordoned the Node while nobody else had cordoned it. */
  readonly keptClosed: boolean;
  /** The attempts for which the Node got a signal, the oldest first. */
  readonly sent: readonly string[];
}

/** What a cache shows. */
export interface Seen {
  readonly nodes: Contents;
  /** The names of the Nodes that were written since. A Node can have the same content again, but not the same version. */
  readonly changed: readonly string[];
}

export interface CapiState {
  /** The index of the present moment in TIMES. */
  readonly time: number;
  /** The Nodes by their names. */
  readonly objects: Contents;
  /** The Nodes as a leader sees them whose watch shows no changes now; undefined if there is none. */
  readonly seen: Seen | undefined;
  readonly drains: Drained;
  readonly isApproved: boolean;
  /**
   * Whether a person has paused the plan. A pause that is only `said` is lost together with the Node on which it is. A pause
   * that a leader has copied to all Nodes of the plan is `kept`.
   */
  readonly pause: 'none' | 'said' | 'kept';
  /** The names of the failed Machines that were deleted after another Node had recorded their failure. */
  readonly gone: readonly string[];
  /** True if the first Machine was done and is deleted, and a leader or a request of another Machine has recorded that before. */
  readonly isFirstGone: boolean;
  /** How many requests Cluster API has written. */
  readonly requests: number;
  /** The moves that may still be made. */
  readonly moves: readonly CapiMove[];
  readonly past: readonly MachinePast[];
  /** The names of the invariants that a write has broken. */
  readonly broken: readonly string[];
}

/** One state as the invariants read it. */
export interface CapiGlance {
  readonly nodes: ReadonlyMap<string, Node>;
  readonly past: readonly MachinePast[];
  readonly broken: readonly string[];
}

export function freshPast(name: string): MachinePast {
  return { name, isChosen: false, keptClosed: false, isEmpty: false, sent: [] };
}

/** Returns the record of the update that Cluster API asks for now; undefined if there is none. */
export function recordOn(node: Node): UpdateRecord | undefined {
  const update = updateOn(node);
  return update && recordOf(node, update);
}

/**
 * Returns the moments at which Machines have started and which are not over, by the name of the Node. They are recorded on the Node
 * itself, or on the Node that represents the plan.
 */
export function startedIn(nodes: ReadonlyMap<string, Node>): Map<string, readonly string[]> {
  const started = [...nodes.values()].flatMap((node) => {
    const { state = 'pending', since = '', intended = [] } = recordOn(node) ?? {};
    const own = state === 'intended' ? [{ name: node.metadata.name, since }] : [];
    return [...own, ...intended];
  });
  const open = started.filter(({ name, since }) => {
    const node = nodes.get(name);
    const record = node && recordOn(node);
    const isOver = record !== undefined && ['done', 'failed'].includes(record.state);
    return !(isOver && Date.parse(record.since) >= Date.parse(since));
  });
  const byName = Map.groupBy(open, ({ name }) => name);
  return new Map([...byName].map(([name, all]) => [name, all.map(({ since }) => since)]));
}

export const isRequested = (node: Node): boolean => updateOn(node) !== undefined;

/** Returns the Nodes with requests, in the order in which Cluster API has chosen their Machines. */
export function chosenAmong(nodes: Iterable<Node>): readonly Node[] {
  const momentOf = (node: Node): string => updateOn(node)?.requested ?? '';
  return [...nodes].filter(isRequested).toSorted((a, b) => (momentOf(a) < momentOf(b) ? -1 : 1));
}

/** Returns the Nodes that represent plans. */
export function plansAmong(nodes: Iterable<Node>): readonly Node[] {
  return representing([...nodes].filter(isRequested));
}

/** Returns the signal whose end the agent has not reported; undefined if there is none. */
export function openSignalOn({ metadata: { annotations } }: Node): SignalData | undefined {
  const signal = decodeSignal(annotations);
  return signal && !isOver(signal) ? signal : undefined;
}
