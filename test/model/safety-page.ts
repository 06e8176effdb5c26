/** Writes the tables of docs/internals/safety.md: invariants, configurations and planted mistakes. */
import type { Configuration } from './cluster.ts';
import type { Exploration, Violation } from './explorer.ts';
import { INVARIANTS } from './invariants.ts';
import type { Mistake } from './mistakes.ts';

/**
 * Returns the page after replacing the text between `<!-- name -->` and `<!-- /name -->`. Throws an error if the page
 * does not contain these marks.
 */
export function withTable(page: string, name: string, rows: readonly string[]): string {
  const open = `<!-- ${name} -->\n`;
  const close = `<!-- /${name} -->`;
  const from = page.indexOf(open);
  const to = page.indexOf(close);
  if (from < 0 || to < from) throw new Error(`no place for ${name}`);
  return `${page.slice(0, from + open.length)}${rows.join('\n')}\n${page.slice(to)}`;
}

/** Returns the first cell of each row of a table whose second cell is a count. */
export function namesIn(page: string, table: string): string[] {
  const [, rows = ''] = page.split(new RegExp(`<!-- /?${table} -->\n?`));
  return rows.split('\n').flatMap((line) => /^\| ([^|]+) \| \d/.exec(line)?.[1] ?? []);
}

export function invariantRows(): string[] {
  return [
    '| invariant | says | upheld by | also seen from outside by |',
    '|---|---|---|---|',
    ...INVARIANTS.map(({ name, sentence, upheldBy, alsoSeenBy }) =>
      row(`\`${name}\``, sentence, upheldBy, alsoSeenBy ?? ''),
    ),
  ];
}

export const CONFIGURATION_HEAD = [
  '| cluster | commands | faults | crashes of each node | states | transitions |',
  '|---|---|---|---|---|---|',
];

export function configurationRow(
  { name, versions, faults, crashesEach }: Configuration,
  { states, transitions }: Exploration,
): string {
  const counts = [states, transitions].map((count) => count.toLocaleString('en'));
  return row(name, versions.length, faults, crashesEach, ...counts);
}

export const MISTAKE_HEAD = ['| planted | in | breaks | after |', '|---|---|---|---|'];

export function mistakeRow({ name, configuration, breaks }: Mistake, { steps }: Violation): string {
  return row(name, configuration.name, `\`${breaks}\``, `${steps.length} steps`);
}

export function row(...cells: readonly (string | number)[]): string {
  return `| ${cells.join(' | ')} |`;
}
