/** Tests that every error code is explained on its page and used in the code. */
import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { REASONS } from '../../src/engine/model/reasons.ts';
import { ERRORS } from '../../src/util/errors.ts';
import { documentedCodes, unusedCodes } from './codes.ts';
import { filesOf, isTest, ROOT, sourceFile } from './tree.ts';

const sources = filesOf('{src,tools}/**/*.ts').filter((file) => !isTest(file));

const REGISTRIES = [
  { path: 'src/util/errors.ts', page: 'docs/reference/errors.md', codes: Object.keys(ERRORS) },
  {
    path: 'src/engine/model/reasons.ts',
    page: 'docs/reference/reasons.md',
    codes: Object.keys(REASONS),
  },
];

/** Returns the files and file patterns that the hints name and that do not exist in the repository. */
function deadEnds(hints: readonly string[]): string[] {
  const paths = hints.flatMap((hint) => hint.match(/\b(?:docs|deploy)\/[\w/.*-]*\w/g) ?? []);
  return paths.filter((path) => globSync(`${ROOT}${path}`).length === 0);
}

test.each(REGISTRIES)(
  'every code of $path is explained, and nothing else is',
  ({ page, codes }) => {
    expect(documentedCodes(readFileSync(`${ROOT}${page}`, 'utf8'))).toEqual(codes);
  },
);

test.each(REGISTRIES)('every code of $path is used', ({ path, codes }) => {
  const others = sources.filter((file) => file.path !== path);
  expect(unusedCodes(codes, others)).toEqual([]);
});

test('every file that the advice names exists', () => {
  expect(deadEnds(Object.values(ERRORS).map(({ hint }) => hint))).toEqual([]);
});

test('a code without a row, without a use, and advice that leads nowhere: found', () => {
  expect(documentedCodes('| code | meaning |\n| `A_B` | x |\n| `C` | x |\n')).toEqual(['A_B', 'C']);
  expect(
    unusedCodes(['A', 'A_B'], [sourceFile('src/a.ts', "throw new RefitError('A_B', 'no')")]),
  ).toEqual(['A']);
  expect(deadEnds(['see docs/nowhere.md', 'apply deploy/crds first'])).toEqual(['docs/nowhere.md']);
});
