/** Finds nodes: by the words of a search, and by the filters that the viewer has turned on. */
import type { NodeState } from '../src/cli/dashboard/state.ts';

export const FILTERS = ['failed', 'waiting', 'held'] as const;
export type Filter = (typeof FILTERS)[number];

/** The maximum number of characters of a search. */
export const LONGEST_SEARCH = 200;

/** What the viewer looks for. Without a filter, the nodes of all filters and all other nodes are shown. */
export interface Wanted {
  readonly search: string;
  readonly filters: readonly Filter[];
}

export function isWanted({ search, filters }: Wanted): boolean {
  return filters.length > 0 || search.trim() !== '';
}

/** Returns true if the filter shows the node. */
export function passes(node: NodeState, filter: Filter): boolean {
  if (filter === 'failed') return node.phase === 'failed';
  return filter === 'held' ? node.hold !== undefined : node.waits === true;
}

export function countsOf(nodes: readonly NodeState[]): Readonly<Record<Filter, number>> {
  const counts = { failed: 0, waiting: 0, held: 0 };
  for (const node of nodes)
    for (const filter of FILTERS) if (passes(node, filter)) counts[filter] += 1;
  return counts;
}

/** Returns, for each node, whether it is shown; undefined if all nodes are shown. */
export type Find = (wanted: Wanted) => readonly boolean[] | undefined;

/**
 * Returns a function that finds nodes. It prepares the texts of all nodes once, so that each key that the viewer types
 * costs little even with thousands of nodes. `labels` is the list to which the nodes refer.
 */
export function finderOf(nodes: readonly NodeState[], labels: readonly string[]): Find {
  let texts: readonly string[] | undefined;
  return (wanted) => {
    if (!isWanted(wanted)) return undefined;
    const words = wanted.search.toLowerCase().split(/\s+/).filter(Boolean);
    texts ??= nodes.map(textOf);
    const known = texts;
    // The labels that have a word are found once, because thousands of nodes share them.
    const wordsWithLabels = words.map((word) => ({ word, places: placesOf(word, labels) }));
    return nodes.map(
      (node, index) =>
        isChosen(node, wanted.filters) &&
        wordsWithLabels.every(
          ({ word, places }) =>
            known[index]?.includes(word) === true ||
            node.labels?.some((place) => places.has(place)) === true,
        ),
    );
  };
}

function isChosen(node: NodeState, filters: readonly Filter[]): boolean {
  return filters.length === 0 || filters.some((filter) => passes(node, filter));
}

/** Returns all texts of the node in which the search looks for words, in lower case. */
function textOf({ name, role, version, state, message, hold = '', zone = '' }: NodeState): string {
  return [name, role, version, state, message, hold, zone].join('\n').toLowerCase();
}

function placesOf(word: string, labels: readonly string[]): ReadonlySet<number> {
  const places = new Set<number>();
  labels.forEach((label, place) => {
    if (label.toLowerCase().includes(word)) places.add(place);
  });
  return places;
}
