/**
 * Tests the log of field cases: each row names tests that exist or says what is open, and the sentence below each table
 * has the right numbers.
 */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { claimsIn, isThere } from './claims.ts';
import { ROOT } from './tree.ts';

const PAGE = readFileSync(`${ROOT}docs/internals/field-cases.md`, 'utf8');
const COLUMNS = 7;
/** The headings of the tables, each with the fewest rows that its table has. */
const HEADINGS: readonly (readonly [string, number])[] = [
  ['k0s', 10],
  ['kubeadm', 10],
  ['Plans of Rancher', 10],
  ['Cluster API', 10],
  ['Debugging, and reading a record', 5],
  ['What Refit says', 5],
  ['One policy, four dialects', 5],
  ['One plan for each owner of Cluster API', 5],
  ['Real counterparts', 5],
  ['Before an upgrade', 21],
  ['One command to upgrade', 5],
  ['The page and its drawer', 5],
];

/** Returns the text below this heading, up to the next heading. */
function sectionOf(page: string, heading: string): string {
  return page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? '';
}

/** Returns the cells of each row of the table below this heading, without those of its head. */
function rowsOf(page: string, heading: string): string[][] {
  return sectionOf(page, heading)
    .split('\n')
    .filter((line) => line.startsWith('|') && !/^\|(?: dialect \||---)/.test(line))
    .map((line) =>
      line
        .slice(1, line.lastIndexOf('|'))
        .split('|')
        .map((cell) => cell.trim()),
    );
}

function faultsOf(page: string, heading: string): string[] {
  return rowsOf(page, heading).flatMap((cells) => {
    const [, source = '', , , first = '', , proof = ''] = cells;
    if (cells.length !== COLUMNS) return [`${source}: ${cells.length} columns`];
    const claims = claimsIn(proof);
    return [
      ...(/^(?:wrong|right)\b/.test(first) ? [] : [`${source}: neither wrong nor right`]),
      ...(claims.length > 0 || proof.startsWith('open: ') ? [] : [`${source}: no proof`]),
      ...claims.filter((claim) => !isThere(claim)).map(({ name }) => `${source}: no test ${name}`),
    ];
  });
}

/** Returns the sentence that must stand below the table of this section. */
function sentenceFor(page: string, heading: string): string {
  const rows = rowsOf(page, heading);
  const wrong = rows.filter((cells) => cells[4]?.startsWith('wrong') === true).length;
  const open = rows.filter((cells) => cells[6]?.includes('open: ') === true).length;
  const are = open === 1 ? 'is' : 'are';
  return `${wrong} of ${rows.length} cases were wrong at first; ${open} of them ${are} open.`;
}

test.each(HEADINGS)(
  'the field cases of %s: at least %i, each with a proof, and counted in a sentence',
  (heading, least) => {
    expect(rowsOf(PAGE, heading).length).toBeGreaterThanOrEqual(least);
    expect(faultsOf(PAGE, heading)).toEqual([]);
    expect(sectionOf(PAGE, heading)).toContain(`\n${sentenceFor(PAGE, heading)}\n`);
  },
);

test('each table of the page is below one of the headings that are checked', () => {
  const headings = [...PAGE.matchAll(/^## (.*)$/gm)].map(([, heading = '']) => heading);
  expect(headings).toEqual(HEADINGS.map(([heading]) => heading));
});

test('a row without a proof, with a test that does not exist, or with another number of columns is found', () => {
  const row = (...cells: string[]): string => `| a | ${cells.join(' | ')} |`;
  const page = [
    '## a',
    row('none', 'i', 'r', 'wrong: x', 's', ''),
    row('lost', 'i', 'r', 'right', 's', '`src/lost.test.ts` "a title"'),
    row('unsaid', 'i', 'r', 'refused', 's', 'open: a list'),
    row('short', 'i'),
  ].join('\n');
  expect(faultsOf(page, 'a')).toEqual([
    'none: no proof',
    'lost: no test a title',
    'unsaid: neither wrong nor right',
    'short: 3 columns',
  ]);
  expect(sentenceFor(page, 'a')).toBe('1 of 4 cases were wrong at first; 1 of them is open.');
});
