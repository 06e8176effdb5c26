/**
 * Groups the Nodes whose Machines have the same owner: a MachineDeployment or a control plane. The Machines of a group are
 * one plan, which the Node of the first Machine represents.
 */
import { NODE_ANNOTATIONS } from '../../../api/capi/machine.ts';
import type { GoneTargets } from '../../../engine/model/rollout.ts';
import { platformOf } from '../../../engine/snapshot/gather.ts';
import { kubeletVersionOf, type Node } from '../../../kube/resources.ts';
import { onceForEach, onceForEachWith } from '../../../util/memo.ts';
import {
  type DoneMachines,
  type MachineUpdate,
  recordOf,
  type UpdateRecord,
  updateOn,
} from './machine-update.ts';

/** A Node with the request to update its Machine. */
export interface Requested {
  readonly node: Node;
  readonly update: MachineUpdate;
}

/** The Machines of one owner that are updated to one version. */
export interface MachineGroup {
  /** The Machines that Cluster API has chosen, in the order in which it chose them. The first one represents the plan. */
  readonly chosen: readonly [Requested, ...Requested[]];
  /** The Nodes of the owner that Cluster API has not chosen yet, and that do not have the version. */
  readonly unchosen: readonly Node[];
}

/**
 * Returns the uid of the rollout that the request belongs to. It is the same for all Machines of an owner that are
 * updated to one version; a Machine without an owner has a rollout of its own.
 */
export function rolloutUidOf({ uid, owner }: MachineUpdate): string {
  return owner?.rollout ?? uid;
}

/**
 * Returns how many Machines of the rollout are done and were deleted since, or lost their requests, and when the last of them was done;
 * undefined if there are none. Requests and records say how many Machines were done before. `ends` are the times at which the present
 * Machines were done, in milliseconds since the Unix epoch; by default, those in their records.
 */
export function goneIn(
  chosen: readonly Requested[],
  ends: readonly number[] = doneIn(chosen),
): GoneTargets | undefined {
  const known = chosen.flatMap(({ node, update }) => [
    update.owner?.before ?? [],
    recordOf(node, update)?.before ?? [],
  ]);
  const gone = known.flat().flatMap(({ done, lastEnd }): GoneTargets[] => {
    const last = Date.parse(lastEnd);
    const count = done - ends.filter((end) => end <= last).length;
    return count > 0 ? [{ count, lastEnd: last }] : [];
  });
  return gone.toSorted((a, b) => b.count - a.count)[0];
}

/**
 * Returns the Machines of the rollout that are done, and those that are gone; undefined if there are none. `ends` are the
 * same as for `goneIn`.
 */
export function doneAmong(
  chosen: readonly Requested[],
  ends: readonly number[] = doneIn(chosen),
): DoneMachines | undefined {
  const { count, lastEnd } = goneIn(chosen, ends) ?? {
    count: 0,
    lastEnd: Number.NEGATIVE_INFINITY,
  };
  const done = ends.length + count;
  if (done === 0) return undefined;
  return { done, lastEnd: new Date(Math.max(lastEnd, ...ends)).toISOString() };
}

/** Returns when the Machines that are done were done, in milliseconds since the Unix epoch. */
function doneIn(chosen: readonly Requested[]): number[] {
  return chosen.flatMap(({ node, update }) => {
    const { state, since = '' } = recordOf(node, update) ?? {};
    return state === 'done' ? [Date.parse(since)] : [];
  });
}

/** What is recorded of one Machine. */
export type MachineState = Pick<UpdateRecord, 'state' | 'since' | 'failure'>;

/**
 * Returns what is recorded of the Machine; undefined if nothing is. The start of a Machine is recorded with the plan, and then
 * on its own Node.
 */
export function stateIn(
  chosen: readonly Requested[],
  { node, update }: Requested,
): MachineState | undefined {
  const own = recordOf(node, update);
  const [plan] = chosen;
  const starts = (plan && recordOf(plan.node, plan.update)?.intended) ?? [];
  const start = starts.find(({ uid }) => uid === update.uid);
  if (start === undefined) return own;
  const isOver =
    own !== undefined &&
    own.state !== 'pending' &&
    Date.parse(own.since) >= Date.parse(start.since);
  return isOver ? own : { state: 'intended', since: start.since };
}

/** Returns the group of the Node; undefined if the Node has no request. `all` are the Nodes that are known. */
export function groupOf(all: readonly Node[], node: Node): MachineGroup | undefined {
  const update = updateOn(node);
  if (update === undefined) return undefined;
  const own: Requested = { node, update };
  if (update.owner === undefined) return { chosen: [own], unchosen: [] };
  const key = keyOf(own);
  const known = byRollout(all).get(key) ?? [];
  if (known.some((each) => each.node === node)) return groupWithKey(all, key);
  // The caller knows a newer version of its own Node than the list has.
  const others = known.filter((each) => each.node.metadata.name !== node.metadata.name);
  return groupWith(all, [...others, own]);
}

/** The group is computed once for each list of Nodes, because each target of a plan asks for it. */
const groupWithKey = onceForEachWith(
  (all: readonly Node[], key: string): MachineGroup | undefined =>
    groupWith(all, byRollout(all).get(key) ?? []),
);

function groupWith(
  all: readonly Node[],
  requested: readonly Requested[],
): MachineGroup | undefined {
  const [first, ...rest] = requested.toSorted(comparePlaces);
  if (first === undefined) return undefined;
  const chosen = [first, ...rest] as const;
  return { chosen, unchosen: unchosenAmong(all, chosen) };
}

/**
 * Returns the Nodes that represent plans, one for each group, and those of later groups last. An earlier group of the same owner is a plan only as long
 * as one of its Machines is not done. `objects` are the Nodes with requests.
 */
export const representing = onceForEach((objects: readonly Node[]): readonly Node[] => {
  const groups = groupsIn(objects);
  const newest = new Map(groups.map((group) => [group[0]?.update.owner?.uid, group]));
  return groups.flatMap((group) => {
    const [first, ...rest] = group;
    if (first === undefined) return [];
    const { owner } = first.update;
    const isNewest = owner === undefined || newest.get(owner.uid) === group;
    const isOpen = [first, ...rest].some(
      ({ node, update }) => recordOf(node, update)?.state !== 'done',
    );
    return isNewest || isOpen ? [first.node] : [];
  });
});

/**
 * Returns the Nodes that Cluster API has not chosen yet, each with the uid of the rollout that waits for it. They have no
 * request, but the rollout may have marked them.
 */
export const awaitedBy = onceForEach(
  (all: readonly Node[]): ReadonlyMap<Node, string> =>
    new Map(
      representing(all.filter((node) => updateOn(node) !== undefined)).flatMap((plan) => {
        const group = groupOf(all, plan);
        if (group === undefined) return [];
        const uid = rolloutUidOf(group.chosen[0].update);
        return group.unchosen.map((node) => [node, uid] as const);
      }),
    ),
);

/** Returns the newest rollout of the owner, with the Machines that it has begun with; undefined if there is none. */
export function newestOf(all: readonly Node[], ownerUid: string): readonly Requested[] | undefined {
  return groupsIn(all).findLast(([first]) => first?.update.owner?.uid === ownerUid);
}

/** Returns the groups, the one with the last request at the end. The first Machine of each group represents it. */
const groupsIn = onceForEach((all: readonly Node[]): readonly (readonly Requested[])[] => {
  const lastOf = (group: readonly Requested[]): Requested | undefined =>
    group.toSorted(compareRequests).at(-1);
  return [...byRollout(all).values()]
    .toSorted((a, b) => compareRequests(lastOf(a), lastOf(b)))
    .map((group) => group.toSorted(comparePlaces));
});

const byRollout = onceForEach((all: readonly Node[]): ReadonlyMap<string, readonly Requested[]> => {
  const requested = all.flatMap((node): Requested[] => {
    const update = updateOn(node);
    return update ? [{ node, update }] : [];
  });
  return Map.groupBy(requested, keyOf);
});

/** The uid of a rollout is unique, also if the Nodes of all Clusters are in the management cluster. */
function keyOf({ update }: Requested): string {
  return rolloutUidOf(update);
}

function placeOf({ metadata: { annotations = {} } }: Node) {
  const { cluster, namespace } = NODE_ANNOTATIONS;
  return { cluster: annotations[cluster], namespace: annotations[namespace] };
}

/**
 * Compares the places of Machines in their plan. A Machine that has begun comes before one that waits, whatever the clock of
 * the replica said that wrote the later request. So the Node that represents a plan holds what the leader recorded and what
 * people asked for.
 */
function comparePlaces(a: Requested, b: Requested): number {
  return rankOf(a) - rankOf(b) || compareRequests(a, b);
}

function rankOf({ node, update }: Requested): number {
  const record = recordOf(node, update);
  if (record === undefined) return 2;
  return record.state === 'pending' ? 1 : 0;
}

function compareRequests(a: Requested | undefined, b: Requested | undefined): number {
  const at = ({ update }: Requested): number => Date.parse(update.requested);
  if (a === undefined || b === undefined) return 0;
  return at(a) - at(b) || (a.node.metadata.name < b.node.metadata.name ? -1 : 1);
}

/**
 * Returns the other Nodes of the owner. The requests list them, as the Machines of the owner named them. A Node that
 * reports the version already, or that Refit cannot update, is not part of the rollout.
 */
function unchosenAmong(
  all: readonly Node[],
  chosen: readonly [Requested, ...Requested[]],
): readonly Node[] {
  const [{ node, update }] = chosen;
  const listed = new Set(chosen.flatMap((each) => each.update.owner?.nodes ?? []));
  for (const each of chosen) listed.delete(each.node.metadata.name);
  if (listed.size === 0) return [];
  const { cluster, namespace } = placeOf(node);
  return all.filter((other) => {
    const place = placeOf(other);
    const isThere = place.cluster === cluster && place.namespace === namespace;
    if (!listed.has(other.metadata.name) || !isThere) return false;
    // A Machine whose kubelet reports the version needs no update, so the Node gets no request.
    return platformOf(other) !== undefined && kubeletVersionOf(other) !== update.version;
  });
}
