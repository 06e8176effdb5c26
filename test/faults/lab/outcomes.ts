/** Counts the outcomes of all trials, as rows of a table. */

interface Row {
  readonly where: string;
  readonly what: string;
  readonly ends: Map<string, number>;
}

export class Outcomes {
  readonly #rows = new Map<string, Row>();
  readonly wrong: string[] = [];

  /** `wrong` is empty if all is well. */
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

  /** Markdown, by place in the order in which they were first tried. What always ends in one way shares a row. */
  table(): string[] {
    const rows = [...this.#rows.values()];
    const places = [...new Set(rows.map(({ where }) => where))];
    const lines = places.flatMap((place) => {
      const own = rows
        .filter(({ where }) => where === place)
        .toSorted(place === 'by chance' ? compare : () => 0);
      return [...Map.groupBy(own, groupOf).values()].map(lineOf);
    });
    return [
      '| where | what goes wrong, and in how many runs | how they ended |',
      '|---|---|---|',
      ...lines,
    ];
  }
}

/** By chance, each number of things has a row of its own. */
function groupOf({ where, what, ends }: Row): string {
  return ends.size === 1 && where !== 'by chance' ? [...ends.keys()].join() : what;
}

/** All of `rows` ended alike, or there is one. */
function lineOf(rows: readonly Row[]): string {
  const faults = rows.map((row) => `${row.what}: ${runsIn(row)}`).join(' · ');
  const [ends = ''] = rows.map((row) => endsOf(row).join(' · '));
  return `| ${rows[0]?.where ?? ''} | ${faults} | ${ends} |`;
}

function compare({ what: a }: Row, { what: b }: Row): number {
  return a < b ? -1 : Number(a > b);
}

/** Without a number if all runs ended so. */
function endsOf({ ends }: Row): string[] {
  if (ends.size === 1) return [...ends.keys()];
  return [...ends]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([end, count]) => `${end}: ${count}`);
}

function runsIn({ ends }: Row): number {
  return [...ends.values()].reduce((sum, count) => sum + count, 0);
}
