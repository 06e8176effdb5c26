/** Tests that no regular expression of the product needs more than linear time in the length of its text. */
import { expect, test } from 'vitest';
import { type Expression, expressionsIn, superLinearPart } from './expressions.ts';
import { productFiles } from './tree.ts';

/**
 * Expressions that are allowed to take quadratic time, by their file. Each value says why their texts are short or
 * trustworthy.
 */
const BOUNDED: Readonly<Record<string, string>> = {
  'src/agent/service/systemd.ts: [^\\s;"\']+':
    'systemctl says the text, of units that only root writes',
};

/** Calls of `new RegExp` whose text is known only at run time. Each value says what the text is. */
const MADE_AT_RUN_TIME: Readonly<Record<string, string>> = {
  'src/cli/output.ts': 'the character ESC, which is written by its number',
  'src/install/host/host-command.ts': 'three words of ours, in a file of root',
  'src/install/host/service-managers.ts': 'the name of a variable of ours',
  'src/util/renamed-version.ts': 'a version as it is, with a bounded end on both sides',
  'src/versions/minor-facts.ts':
    'an expression in the sources of Kubernetes, which a test compares with a digest',
};

const found = productFiles().map(({ path, text }) => ({ path, ...expressionsIn(text) }));

function slowOnes(path: string, known: readonly Expression[]): string[] {
  return known.flatMap((each) => {
    const part = superLinearPart(each);
    return part === undefined ? [] : [`${path}: ${part}`];
  });
}

test('each regular expression takes a time that grows with its text, and no faster', () => {
  expect(found.flatMap(({ known }) => known).length).toBeGreaterThan(200);
  expect(found.flatMap(({ path, known }) => slowOnes(path, known))).toEqual(Object.keys(BOUNDED));
});

test('each expression that is made at run time is known', () => {
  const paths = found.flatMap(({ path, unknown }) => unknown.map(() => path));
  expect([...new Set(paths)]).toEqual(Object.keys(MADE_AT_RUN_TIME));
});

test.each([
  ['two repetitions that share a text', '/^a: *(.*?) *$/', [' * and .*?']],
  ['a repetition in a repetition', '/^(a+)+$/', ['a+']],
  ['one that is tried from each character', '/\\s+$/', ['\\s+']],
  ['a text that is put together', "const NAME = '[a-z]+'; new RegExp(`${NAME}$`, 'i')", ['[a-z]+']],
  [
    'one that is taken from a literal',
    'const A = /^b/; new RegExp(`${A.source}c*c*$`)',
    ['c* and c*'],
  ],
  ['the same, with a clear beginning', '/(?<!\\s)\\s+$/', []],
])('%s: found, unless it is safe', (_name, code, parts) => {
  expect(expressionsIn(code).known.flatMap((each) => superLinearPart(each) ?? [])).toEqual(parts);
});

test('a text that only a caller knows: found', () => {
  expect(expressionsIn('const f = (word) => new RegExp(`${word}+`)').unknown).toEqual([
    'new RegExp(`${word}+`)',
  ]);
});
