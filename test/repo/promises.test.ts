/** Tests the page of documented promises: every statement has its row, a known state, and tests that exist. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { claimsIn, isThere } from './claims.ts';
import { ROOT } from './tree.ts';

const PAGE = readFileSync(`${ROOT}docs/reference/promises.md`, 'utf8');

/** How many statements each of the five documents has, in the order of the page. */
const STATEMENTS = [35, 12, 20, 12, 25];

/** The patterns that the last cell of a row must match, by the state of the row. */
const DEMANDS: ReadonlyMap<string, readonly RegExp[]> = new Map([
  ['Holds', []],
  ['Holds, with stand-ins', [/^Not seen: \S/]],
  ['Out', [/\bReason: \w/, /\bSwitch: \w/]],
  ['Not yet', [/^Missing: \S/]],
]);

interface Row {
  readonly number: string;
  readonly state: string;
  readonly proof: string;
}

function rowsOf(page: string): Row[] {
  return [...page.matchAll(/^\| *(\d+\.\d+) *\|[^|]*\| *([^|]*?) *\| *(.*?) *\|$/gm)].map(
    ([, number = '', state = '', proof = '']) => ({
      number,
      state: state.replace(/^\*\*(.*)\*\*$/, '$1'),
      proof,
    }),
  );
}

function problemsOf({ number, state, proof }: Row): string[] {
  const demands = DEMANDS.get(state);
  if (demands === undefined) return [`${number}: "${state}" is no state`];
  const claims = claimsIn(proof);
  const unmet = demands.filter((demand) => !demand.test(proof));
  const missing = claims.filter((claim) => !isThere(claim));
  return [
    ...(state.startsWith('Holds') && claims.length === 0 ? [`${number}: names no test`] : []),
    ...unmet.map(({ source }) => `${number}: lacks ${source}`),
    ...missing.map(({ path, name }) => `${number}: ${path} has no test ${name ?? ''}`.trimEnd()),
  ];
}

test('each of the 104 statements has one row, in order', () => {
  const wanted = STATEMENTS.flatMap((count, document) =>
    Array.from({ length: count }, (_, index) => `${document}.${index + 1}`),
  );
  expect(wanted).toHaveLength(104);
  expect(rowsOf(PAGE).map(({ number }) => number)).toEqual(wanted);
});

test('each row has a known state with what it demands, and tests that exist', () => {
  expect(rowsOf(PAGE).flatMap(problemsOf)).toEqual([]);
});

test('an unknown state, a row without proof, reason or gap, and a test that is not there: found', () => {
  const links = '`test/repo/links.test.ts`';
  const rows = [
    `| 0.1 | a | **Holds** | ${links} "every link leads somewhere" |`,
    '| 0.2 | a | **Holds** | seen by hand |',
    '| 0.3 | a | **Partly** | b |',
    '| 0.4 | a | **Out** | Reason: b |',
    '| 0.5 | a | **Not yet** | later |',
    `| 0.6 | a | **Not yet** | Missing: b. ${links} "no such test" |`,
    '| 0.7 | a | **Holds** | `src/none.test.ts` |',
    '| 0.8 | a | **Holds, with stand-ins** | seen by hand |',
  ];
  expect(rowsOf(rows.join('\n')).flatMap(problemsOf)).toEqual([
    '0.2: names no test',
    '0.3: "Partly" is no state',
    '0.4: lacks \\bSwitch: \\w',
    '0.5: lacks ^Missing: \\S',
    '0.6: test/repo/links.test.ts has no test no such test',
    '0.7: src/none.test.ts has no test',
    '0.8: names no test',
    '0.8: lacks ^Not seen: \\S',
  ]);
});
