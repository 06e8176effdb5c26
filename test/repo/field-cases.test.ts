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

/** Returns the cells of each row of the table of this dialect. */
function rowsOf(page: string, dialect: string): string[][] {
  return page
    .split('\n')
    .filter((line) => line.startsWith(`| ${dialect} |`))
    .map((line) =>
      line
        .slice(1, line.lastIndexOf('|'))
        .split('|')
        .map((cell) => cell.trim()),
    );
}

function faultsOf(page: string, dialect: string): string[] {
  return rowsOf(page, dialect).flatMap((cells) => {
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

/** Returns the sentence that must stand below the table of this dialect. */
function sentenceFor(page: string, dialect: string): string {
  const rows = rowsOf(page, dialect);
  const wrong = rows.filter((cells) => cells[4]?.startsWith('wrong') === true).length;
  const open = rows.filter((cells) => cells[6]?.includes('open: ') === true).length;
  return `${wrong} of ${rows.length} cases were wrong at first; ${open} of them are open.`;
}

test.each(['k0s', 'kubeadm', 'Rancher', 'Cluster API'])(
  'the field cases of %s: at least ten, each with a proof, and counted in a sentence',
  (dialect) => {
    expect(rowsOf(PAGE, dialect).length).toBeGreaterThanOrEqual(10);
    expect(faultsOf(PAGE, dialect)).toEqual([]);
    expect(PAGE).toContain(`\n${sentenceFor(PAGE, dialect)}\n`);
  },
);

test('a row without a proof, with a test that does not exist, or with another number of columns is found', () => {
  const row = (...cells: string[]): string => `| a | ${cells.join(' | ')} |`;
  const page = [
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
  expect(sentenceFor(page, 'a')).toBe('1 of 4 cases were wrong at first; 1 of them are open.');
});
