/**
 * Tests the tables of the weaknesses of the original tools: every number has its row, and every test that a row names
 * exists.
 */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Claim } from './claims.ts';
import { claimsIn, isThere } from './claims.ts';
import { ROOT } from './tree.ts';

const page = (name: string): string => readFileSync(`${ROOT}docs/internals/${name}`, 'utf8');
const PAGES = [
  ['k0s Autopilot', 69, page('parity-autopilot.md')],
  ['system-upgrade-controller', 30, page('parity-suc.md')],
] as const;

/** The rows for the tests of system-upgrade-controller itself, and for the hazards of a take-over. */
const SUC_ROWS = [...named('U', 12), ...named('E', 18), ...named('H', 9)];
/** The rows for the checks and steps of KubeOne, and for the ideas of safer tools. */
const KUBEONE_ROWS = [...named('F', 12), ...named('', 28), ...named('S', 32)];

interface Row {
  readonly number: number;
  readonly text: string;
  readonly claims: readonly Claim[];
}

function named(letter: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${letter}${index + 1}`);
}

function rowsOf(page: string): Row[] {
  return page.split('\n').flatMap((text) => {
    const number = /^\| *(\d+) *\|/.exec(text)?.[1];
    return number === undefined ? [] : [{ number: Number(number), text, claims: claimsIn(text) }];
  });
}

function unfounded(rows: readonly Row[]): string[] {
  return rows.flatMap(({ number, claims }) => {
    if (claims.length === 0) return [`${number}: names no test`];
    const missing = claims.filter((claim) => !isThere(claim));
    return missing.map(({ path, name }) =>
      `${number}: ${path} has no test ${name ?? ''}`.trimEnd(),
    );
  });
}

test.each(PAGES)(
  '%s: each of %i weaknesses has its row, in order, and the tests that it names exist',
  (_name, count, text) => {
    expect(rowsOf(text).map(({ number }) => number)).toEqual(
      Array.from({ length: count }, (_, index) => index + 1),
    );
    expect(unfounded(rowsOf(text))).toEqual([]);
  },
);

test('system-upgrade-controller: each original test and each hazard has a row with tests that exist', () => {
  const rows = [...page('parity-suc.md').matchAll(/^\| ([UEH]\d+) \|.*$/gm)];
  expect(rows.map(([, name]) => name)).toEqual(SUC_ROWS);
  for (const [text, name] of rows) {
    const claims = claimsIn(text);
    expect(claims.length, name).toBeGreaterThan(0);
    expect(
      claims.filter((claim) => !isThere(claim)),
      name,
    ).toEqual([]);
  }
});

test('KubeOne: each check, step and idea has its row, and what is done in part or whole names tests that exist', () => {
  const rows = [...page('parity-kubeone.md').matchAll(/^\| ([FS]?\d+) \|.*$/gm)].map(
    ([text, name = '']) => ({
      name,
      text,
    }),
  );
  expect(rows.map(({ name }) => name)).toEqual(KUBEONE_ROWS);
  for (const { name, text } of rows) {
    expect(text, name).toMatch(/\*\*(Done|Partly|Open|Not wanted)\b/);
    // A row for an idea that is left open must give the reason.
    if (name.startsWith('S'))
      expect(text, name).not.toMatch(/\*\*open\b(?!:\*\* [^|]+, because [^|]+)/i);
    const claims = claimsIn(text);
    expect(claims.length > 0, name).toBe(/\*\*(Done|Partly):?\*\*/.test(text));
    expect(
      claims.filter((claim) => !isThere(claim)),
      name,
    ).toEqual([]);
  }
});

test('a test that is not there, a file without one and a row without any: found', () => {
  const links = '`test/repo/links.test.ts`';
  const rows = [
    `| 1 | a | b | ${links} "every link leads somewhere", "every link", "no such test" |`,
    `| 2 | a | b | ${links} |`,
    '| 3 | a | b | `src/none.test.ts` "a" |',
    '| 4 | a | b | seen by hand |',
  ];
  expect(unfounded(rowsOf(rows.join('\n')))).toEqual([
    '1: test/repo/links.test.ts has no test every link',
    '1: test/repo/links.test.ts has no test no such test',
    '2: test/repo/links.test.ts has no test',
    '3: src/none.test.ts has no test a',
    '4: names no test',
  ]);
});
