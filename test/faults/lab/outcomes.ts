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

  /** Markdown, by place in the order in which they were first tried. */
  table(): string[] {
    const places = [...new Set([...this.#rows.values()].map(({ where }) => where))];
    const rows = [...this.#rows.values()].toSorted(
      (a, b) => places.indexOf(a.where) - places.indexOf(b.where) || (a.where === 'by chance' ? compare(a, b) : 0),
    );
    return [
      '| where | what goes wrong | runs | how they ended |',
      '|---|---|---|---|',
      ...rows.map((row) => `| ${row.where} | ${row.what} | ${runsIn(row)} | ${endsOf(row).join(' · ')} |`),
    ];
  }
}

function compare({ what: a }: Row, { what: b }: Row): number {
  return a < b ? -1 : Number(a > b);
}

/** Without a number if all runs ended so. */
function endsOf({ ends }: Row): string[] {
  if (ends.size === 1) return [...ends.keys()];
  return [...ends].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([end, count]) => `${end}: ${count}`);
}

function runsIn({ ends }: Row): number {
  return [...ends.values()].reduce((sum, count) => sum + count, 0);
}
