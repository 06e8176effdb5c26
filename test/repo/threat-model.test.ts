/** Tests that the threat model names every attack that has a test, and only tests that exist. */
import { existsSync, globSync } from 'node:fs';
import { expect, test } from 'vitest';
import { filesOf, ROOT } from './tree.ts';

const PAGE = 'docs/internals/threat-model.md';

/** One line for each test that is named but missing, and each attack that is not named. */
function disagreements(
  page: string,
  attacks: readonly string[],
  exists: (path: string) => boolean,
): string[] {
  const named = new Set(page.match(/[\w./-]+\.test\.ts/g));
  return [
    ...[...named]
      .filter((path) => !exists(path))
      .map((path) => `${PAGE} names ${path}, which does not exist`),
    ...attacks
      .filter((path) => !named.has(path))
      .map((path) => `${path} is not named in ${PAGE}: add who attacks, and what stops it`),
  ];
}

const attacks = globSync('test/attacks/**/*.test.ts', { cwd: ROOT });
const text = filesOf(PAGE)
  .map((page) => page.text)
  .join('');

test('the threat model names every attack test, and only tests that exist', () => {
  expect(attacks).not.toEqual([]);
  expect(disagreements(text, attacks, (path) => existsSync(`${ROOT}${path}`))).toEqual([]);
});

test('a test that is gone and an attack without a row: found', () => {
  const page = '| to read it | its mode | `test/attacks/a.test.ts`, `src/gone.test.ts` |';
  const found = disagreements(page, ['test/attacks/a.test.ts', 'test/attacks/b.test.ts'], (path) =>
    path.includes('/a.'),
  );
  expect(found).toEqual([
    `${PAGE} names src/gone.test.ts, which does not exist`,
    `test/attacks/b.test.ts is not named in ${PAGE}: add who attacks, and what stops it`,
  ]);
});
