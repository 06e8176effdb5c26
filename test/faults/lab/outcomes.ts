/** Counts the outcomes of all trials, as rows of a table. */

/** The place of all runs whose faults a seed chose. */
export const MIXTURES = 'random mixtures';

interface Row {
  readonly where: string;
  readonly what: string;
  readonly ends: Map<string, number>;
}

export class Outcomes {
  readonly #rows = new Map<string, Row>();
  readonly wrong: string[] = [];

  /** Counts the outcome of one trial. `wrong` is empty if nothing was wrong. */
  count(where: string, what: string, end: string, wrong: string): void {
    const key = `${where}/${what}`;
    const row = this.#rows.get(key) ?? { where, what, ends: new Map<string, number>() };
    this.#rows.set(key, row);
    const told = wrong === '' ? end : `**wrong**`;
    row.ends.set(told, (row.ends.get(told) ?? 0) + 1);
    if (wrong !== '') this.wrong.push(wrong);
  }

  get runs(): number {
    return [...this.#rows.values()].reduce((sum, row) => sum + runsIn(row), 0);
  }

  /**
   * Returns a Markdown table. Its places are in the order in which they were first tried. If all runs of several
   * mishaps ended in the same way, these mishaps share a row.
   */
  table(): string[] {
    const rows = [...this.#rows.values()];
    const places = [...new Set(rows.map(({ where }) => where))];
    const lines = places.flatMap((place) => {
      const own = rows
        .filter(({ where }) => where === place)
        .toSorted(place === MIXTURES ? compare : () => 0);
      return [...Map.groupBy(own, groupOf).values()].map(lineOf);
    });
    return [
      '| task: place of the fault | faults, each with its number of runs | results of these runs |',
      '|---|---|---|',
      ...lines,
    ];
  }
}

/** Returns the key of the row. For random mixtures, each number of mishaps has its own row. */
function groupOf({ where, what, ends }: Row): string {
  return ends.size === 1 && where !== MIXTURES ? [...ends.keys()].join() : what;
}

/** Returns one line of the table. All of `rows` ended in the same way, or there is only one row. */
function lineOf(rows: readonly Row[]): string {
  const faults = rows.map((row) => `${row.what}: ${runsIn(row)}`).join(' · ');
  const [ends = ''] = rows.map((row) => endsOf(row).join(' · '));
  return `| ${rows[0]?.where ?? ''} | ${faults} | ${ends} |`;
}

function compare({ what: a }: Row, { what: b }: Row): number {
  return a < b ? -1 : Number(a > b);
}

/** Returns the ends with their counts. The count is left out if all runs had the same end. */
function endsOf({ ends }: Row): string[] {
  if (ends.size === 1) return [...ends.keys()];
  return [...ends]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([end, count]) => `${end}: ${count}`);
}

function runsIn({ ends }: Row): number {
  return [...ends.values()].reduce((sum, count) => sum + count, 0);
}
