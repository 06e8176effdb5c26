/** Divides nodes into groups with headings, and says in which row of the list each node and heading is. */
import type { NodeState } from '../src/cli/dashboard/state.ts';

export const GROUPINGS = ['role', 'wave', 'zone', 'wave and zone'] as const;
export type Grouping = (typeof GROUPINGS)[number];

/** The height of a heading, and of a lane with one line of text, in pixels. The style sheet has the same height. */
export const LANE = 32;

export interface Group {
  /** The heading; undefined if all nodes are in one group, which needs no heading. */
  readonly title: string | undefined;
  /** The row of the heading; the row of the first node if the group has no heading. */
  readonly row: number;
  /** The row of the first node. */
  readonly first: number;
  /** The indexes of the nodes in the state, in the order of the rows. */
  readonly nodes: readonly number[];
}

export interface Layout {
  readonly groups: readonly Group[];
  readonly rows: number;
  /** The distance of each row from the top of the list, in pixels. The last member is the height of the list. */
  readonly tops: readonly number[];
  /** The indexes of all shown nodes in the state, in the order of the list. */
  readonly order: readonly number[];
  /** The row of each shown node, by the index of the node in the state. Headings of groups count as rows. */
  readonly rowOf: readonly number[];
  /** The position of each shown node in the list, by the index of the node in the state. Headings of groups do not count. */
  readonly placeOf: readonly number[];
}

/**
 * Returns the groupings that these nodes allow. Nodes without waves cannot be grouped by wave, and nodes without zones
 * cannot be grouped by zone.
 */
export function groupingsOf(nodes: readonly NodeState[]): readonly Grouping[] {
  const hasWaves = nodes.some(({ wave }) => wave !== undefined);
  const hasZones = nodes.some(({ zone }) => zone !== undefined);
  return GROUPINGS.filter((by) => {
    if (by === 'wave') return hasWaves;
    if (by === 'zone') return hasZones;
    return by === 'role' || (hasWaves && hasZones);
  });
}

/** Nodes that are divided into groups, each with its heading. */
export interface Divided {
  readonly title: string | undefined;
  /** The indexes of the nodes in the state. Nodes that failed or are stuck come first. */
  readonly nodes: readonly number[];
}

/** Divides all nodes. The result does not depend on what the viewer searches, so that a search is quick. */
export function divide(nodes: readonly NodeState[], by: Grouping): readonly Divided[] {
  const divided = by === 'role' ? runsOf(nodes) : sortedGroups(nodes, by);
  const hasHeadings = by !== 'role' || divided.length > 1;
  return divided.map((members) => ({
    title: hasHeadings ? titleOf(nodes, members, by) : undefined,
    nodes: urgentFirst(nodes, members),
  }));
}

/** Returns the same indexes: first the failed nodes, then the stuck nodes, then all others, each in the same order as before. */
function urgentFirst(nodes: readonly NodeState[], members: readonly number[]): readonly number[] {
  const ranked: [number[], number[], number[]] = [[], [], []];
  for (const index of members) {
    const node = nodes[index];
    if (node?.phase === 'failed') ranked[0].push(index);
    else ranked[node?.stuck === true ? 1 : 2].push(index);
  }
  return ranked.flat();
}

/**
 * Says in which row each node and heading is. `isShown` has a value for each node; it is undefined if all nodes are
 * shown. A group without a shown node has no heading. `heightOf`
 * returns the height of the lane of a node in pixels.
 */
export function layoutOf(
  all: readonly Divided[],
  isShown: readonly boolean[] | undefined,
  heightOf: (index: number) => number,
): Layout {
  const divided = isShown === undefined ? all : all.flatMap((group) => onlyShown(group, isShown));
  const rowOf: number[] = [];
  const placeOf: number[] = [];
  const tops: number[] = [0];
  let top = 0;
  let row = 0;
  let place = 0;
  const addRow = (height: number): void => {
    top += height;
    row += 1;
    tops[row] = top;
  };
  const groups = divided.map(({ title, nodes: members }): Group => {
    const start = row;
    if (title !== undefined) addRow(LANE);
    const first = row;
    for (const index of members) {
      rowOf[index] = row;
      placeOf[index] = place;
      addRow(heightOf(index));
      place += 1;
    }
    return { title, row: start, first, nodes: members };
  });
  const order = divided.flatMap(({ nodes }) => nodes);
  return { groups, rows: row, tops, order, rowOf, placeOf };
}

/** Returns the group with only its shown nodes, and says in its heading how many there are; no group if there are none. */
function onlyShown({ title, nodes }: Divided, isShown: readonly boolean[]): readonly Divided[] {
  const shown = nodes.filter((index) => isShown[index] === true);
  if (shown.length === 0) return [];
  return [
    { title: title === undefined ? undefined : `${title}; ${shown.length} shown`, nodes: shown },
  ];
}

/** Returns a group for each sequence of adjacent nodes with the same role and version. */
function runsOf(nodes: readonly NodeState[]): number[][] {
  const groups: number[][] = [];
  nodes.forEach((node, index) => {
    const before = nodes[index - 1];
    if (before?.role === node.role && before.version === node.version) groups.at(-1)?.push(index);
    else groups.push([index]);
  });
  return groups;
}

/** Returns the groups, sorted by wave and then by zone. Nodes without a wave, such as the control plane, come first. */
function sortedGroups(nodes: readonly NodeState[], by: Grouping): number[][] {
  const byKey = new Map<string, number[]>();
  nodes.forEach((node, index) => {
    const key = JSON.stringify(keyOf(node, by));
    const members = byKey.get(key);
    if (members === undefined) byKey.set(key, [index]);
    else members.push(index);
  });
  const zones = new Intl.Collator('en', { numeric: true });
  return [...byKey.values()].toSorted(([a = 0], [b = 0]) => {
    const [waveA, zoneA] = keyOf(nodes[a], by);
    const [waveB, zoneB] = keyOf(nodes[b], by);
    if (waveA !== waveB) return waveA - waveB;
    if (zoneA === '' || zoneB === '') return zoneA === '' ? 1 : -1;
    return zones.compare(zoneA, zoneB);
  });
}

/**
 * Returns the wave and the zone by which the node is grouped. The wave is 0 if the node has no wave or is not grouped
 * by wave. The zone is empty if the node has no zone or is not grouped by zone.
 */
function keyOf(node: NodeState | undefined, by: Grouping): readonly [number, string] {
  const wave = by === 'zone' ? undefined : node?.wave;
  const zone = by === 'wave' ? undefined : node?.zone;
  return [wave ?? 0, zone ?? ''];
}

function titleOf(nodes: readonly NodeState[], members: readonly number[], by: Grouping): string {
  const [first] = members;
  const node = first === undefined ? undefined : nodes[first];
  return `${nameOf(node, by)}: ${countsOf(nodes, members)}`;
}

function nameOf(node: NodeState | undefined, by: Grouping): string {
  if (by === 'role') return `${node?.role}s to ${node?.version}`;
  const wave = node?.wave === undefined ? 'no wave' : `wave ${node.wave}`;
  const zone = node?.zone === undefined ? 'no zone' : `zone ${node.zone}`;
  if (by === 'wave') return wave;
  return by === 'zone' ? zone : `${wave}, ${zone}`;
}

/** Returns how many nodes are done, and how many are in other phases that matter. */
function countsOf(nodes: readonly NodeState[], members: readonly number[]): string {
  const counts = { done: 0, moving: 0, failed: 0, skipped: 0, pending: 0, unanswered: 0 };
  for (const index of members) {
    const node = nodes[index];
    counts[node?.unanswered === true ? 'unanswered' : (node?.phase ?? 'pending')] += 1;
  }
  const { done, moving, failed, skipped, unanswered } = counts;
  const others = [
    [moving, 'in progress'],
    [unanswered, 'without an answer'],
    [failed, 'failed'],
    [skipped, 'skipped'],
  ] as const;
  const told = others.filter(([count]) => count > 0).map(([count, word]) => `, ${count} ${word}`);
  return `${done} of ${members.length} done${told.join('')}`;
}

/** Returns the row at this distance from the top of the list, in pixels. */
export function rowAt({ tops, rows }: Layout, distance: number): number {
  let low = 0;
  let high = rows;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((tops[middle + 1] ?? distance) <= distance) low = middle + 1;
    else high = middle;
  }
  return low;
}
