/** Owns the tie between the codes of errors, the page that explains them, and their use. */
import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ERRORS } from '../../src/util/errors.ts';
import { filesOf, isTest, ROOT } from './tree.ts';

const page = readFileSync(`${ROOT}docs/reference/errors.md`, 'utf8');
const sources = filesOf('{src,tools}/**/*.ts')
  .filter((file) => !isTest(file) && file.path !== 'src/util/errors.ts')
  .map(({ text }) => text)
  .join('\n');

function documented(markdown: string): string[] {
  return [...markdown.matchAll(/^\| `(REFIT_[A-Z_]+)` \|/gm)].map(([, code = '']) => code);
}

function unused(codes: readonly string[], text: string): string[] {
  return codes.filter((code) => !text.includes(`'${code}'`));
}

/** Files of the repository that the advice sends people to. */
function deadEnds(hints: readonly string[]): string[] {
  const paths = hints.flatMap((hint) => hint.match(/\b(?:docs|deploy)\/[\w/.-]*\w/g) ?? []);
  return paths.filter((path) => !existsSync(`${ROOT}${path}`));
}

test('every code is explained, and nothing else is', () => {
  expect(documented(page)).toEqual(Object.keys(ERRORS));
});

test('every code is used', () => {
  expect(unused(Object.keys(ERRORS), sources)).toEqual([]);
});

test('every file that the advice names exists', () => {
  expect(deadEnds(Object.values(ERRORS).map(({ hint }) => hint))).toEqual([]);
});

test('a code without a row, without a use, and advice that leads nowhere: found', () => {
  expect(documented('| `REFIT_A` | x |\n| `REFIT_C` | x |\n')).not.toEqual(['REFIT_A', 'REFIT_B']);
  expect(unused(['REFIT_A', 'REFIT_AB'], "throw new RefitError('REFIT_AB', 'no')")).toEqual(['REFIT_A']);
  expect(deadEnds(['see docs/nowhere.md', 'apply deploy/crds first'])).toEqual(['docs/nowhere.md']);
});
