/** Collects the labels of Nodes for the search of the page, in a short form. */

type Labels = Readonly<Record<string, string>>;

/** The maximum number of labels of one Node. Nodes usually have about ten. */
const MOST_LABELS = 32;
/** The labels whose value is the name of the node, or that another label repeats. */
const REPEATED = /^(?:kubernetes\.io\/hostname|beta\.kubernetes\.io\/.*)$/;

export interface LabelTable {
  /** Each label once, as `key=value`, in the order in which the labels were added. */
  readonly all: readonly string[];
  /** Adds the labels of one Node. Returns their indexes in `all`; undefined if there are none. */
  add(labels: Labels | undefined): readonly number[] | undefined;
}

export function createLabelTable(): LabelTable {
  const places = new Map<string, number>();
  const all: string[] = [];
  const placeOf = (label: string): number =>
    places.getOrInsertComputed(label, () => all.push(label) - 1);
  return {
    all,
    add(labels = {}) {
      const own = Object.entries(labels).filter(([key]) => !REPEATED.test(key));
      if (own.length === 0) return undefined;
      return own.slice(0, MOST_LABELS).map(([key, value]) => placeOf(`${key}=${value}`));
    },
  };
}
