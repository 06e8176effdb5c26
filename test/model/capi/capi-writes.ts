/** Judges the writes of a leader to one Node: what it starts, signals and acknowledges. */
import { updateOn } from '../../../src/dialects/capi/plan/machine-update.ts';
import { controlsOn } from '../../../src/engine/model/controls.ts';
import { kubeletVersionOf, type Node } from '../../../src/kube/resources.ts';
import { decodeSignal } from '../../../src/signal/annotations.ts';
import { pastOf, remembering } from '../object-states.ts';
import { type CapiConfiguration, NEW_VERSION } from './capi-objects.ts';
import {
  type CapiState,
  chosenAmong,
  isRequested,
  openSignalOn,
  recordOn,
  startedIn,
} from './capi-state.ts';

/** A write of a leader. `nodes` are all Nodes before the write. */
export interface NodeWrite {
  readonly configuration: CapiConfiguration;
  readonly nodes: ReadonlyMap<string, Node>;
  readonly before: Node;
  readonly after: Node;
}

/** Returns the state with what the write breaks, and with what the model remembers of it. */
export function judged(state: CapiState, write: NodeWrite): CapiState {
  const broken = [
    ...startsIn(write).flatMap((started) => brokenByStart(state, write, started)),
    ...(signalsIn(write) ? brokenBySignal(state, write) : []),
    ...(isAcknowledged(write) && !isEmptied(state, write) ? ['drained-before-work'] : []),
  ];
  const all = [...new Set([...state.broken, ...broken])].toSorted();
  const judgedState = broken.length === 0 ? state : { ...state, broken: all };
  if (!signalsIn(write)) return judgedState;
  const { name } = write.before.metadata;
  const { sent } = pastOf(state, name);
  return remembering(judgedState, { name, sent: [...sent, attemptIn(write)] });
}

/** Returns the Nodes whose Machines start, as the write records. An intent that is recorded anew has started before. */
function startsIn({ nodes, before, after }: NodeWrite): Node[] {
  const { name } = before.metadata;
  const then = new Map([...nodes, [name, after]]);
  const known = startedIn(nodes);
  return [...startedIn(then).keys()].flatMap((each) =>
    known.has(each) ? [] : (nodes.get(each) ?? []),
  );
}

/** Returns true if the write sends a signal, even if the same signal was sent before. */
function signalsIn({ before, after }: NodeWrite): boolean {
  const [was, is] = [before, after].map((node) => decodeSignal(node.metadata.annotations));
  if (is === undefined || is.status !== undefined) return false;
  return was === undefined || was.created !== is.created || was.status !== undefined;
}

/** Returns the attempt for which the write sends a signal: its moment, and the request. */
function attemptIn({ after }: NodeWrite): string {
  const { created = '' } = decodeSignal(after.metadata.annotations) ?? {};
  return `${updateOn(after)?.uid} ${created}`;
}

function isAcknowledged({ before, after }: NodeWrite): boolean {
  const [was, is] = [before, after].map(
    (node) => decodeSignal(node.metadata.annotations)?.status?.status,
  );
  return is === 'ApplyingUpdate' && was !== is;
}

function isEmptied(state: CapiState, { before }: NodeWrite): boolean {
  return before.spec?.unschedulable === true && pastOf(state, before.metadata.name).isEmpty;
}

function brokenByStart(
  state: CapiState,
  { configuration, nodes }: NodeWrite,
  started: Node,
): string[] {
  const { waves, maxFailures, hasOwner } = configuration;
  const chosen = chosenAmong(hasOwner ? nodes.values() : [started]);
  const failed = chosen.filter((node) => node !== started && isFailed(node, chosen));
  const [first] = chosen;
  const { retries } = controlsOn(first ?? started);
  const gone = state.gone.filter((name) => !retries.has(name));
  // A Machine that was done and is deleted keeps the place of the first wave.
  const isFirst = first === undefined || (first === started && !state.isFirstGone);
  const isLater = waves !== undefined && !isFirst;
  return [
    ...(state.pause === 'none' ? [] : ['paused-never-starts']),
    ...(isRequested(started) ? [] : ['only-chosen-starts']),
    ...(failed.length + gone.length > maxFailures ? ['failures-stop-starts'] : []),
    ...(isLater && !state.isFirstGone && !hasEnded(first) ? ['waves-in-turn'] : []),
    ...(isLater && waves === 'approved' && !state.isApproved ? ['approved-before-start'] : []),
  ];
}

/** Returns true if the Machine has failed, and no person has ordered to retry it. */
function isFailed(node: Node, chosen: readonly Node[]): boolean {
  const { retries } = controlsOn(chosen[0] ?? node);
  return recordOn(node)?.state === 'failed' && !retries.has(node.metadata.name);
}

/**
 * Returns true if nothing works on the Node any more. One turn can record that a Machine is done and that the next one
 * starts, and the process can end between the two writes.
 */
function hasEnded(node: Node): boolean {
  const state = recordOn(node)?.state;
  const isUpgraded = kubeletVersionOf(node) === NEW_VERSION && openSignalOn(node) === undefined;
  return state === 'failed' || state === 'done' || isUpgraded;
}

function brokenBySignal(state: CapiState, write: NodeWrite): string[] {
  const { nodes, before, after } = write;
  const { created } = decodeSignal(after.metadata.annotations) ?? {};
  const isRecorded =
    startedIn(nodes)
      .get(before.metadata.name)
      ?.includes(created ?? '') === true;
  const isSentAgain = pastOf(state, before.metadata.name).sent.includes(attemptIn(write));
  return [
    ...(isRequested(before) ? [] : ['only-chosen-starts']),
    ...(isRecorded ? [] : ['intent-before-signal']),
    ...(isSentAgain ? ['one-signal-per-attempt'] : []),
  ];
}
