/** Checks that code, docs and messages use the glossary's words, and that every retired word would be found. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { RETIRED, retiredWordsIn } from './retired-words.ts';
import { filesOf, ROOT, sourceFile } from './tree.ts';

const GLOSSARY = 'docs/internals/glossary.md';
/** The page of messages repeats texts of src, where they are found. The changelog says which names were replaced. */
const EXCEPT = [
  GLOSSARY,
  'CHANGELOG.md',
  'test/repo/retired-words.ts',
  'docs/reference/messages.md',
  'package-lock.json',
];

/** Recordings of real clusters have the words of the originals. */
const files = filesOf(
  '{src,sandbox,test,tools,bench,docs,deploy,.ci}/**/*.{ts,cjs,mjs,pl,md,yaml,sh}',
  '*.{ts,md,json}',
).filter(({ path }) => !path.startsWith('test/fixtures/') && !EXCEPT.includes(path));

test('no retired word is left', () => {
  expect(retiredWordsIn(RETIRED, files)).toEqual([]);
});

test.each(RETIRED)('a retired word is found: $broken', ({ examples }) => {
  for (const example of examples) {
    const planted = sourceFile('src/engine/planted.ts', `\n// ${example.replaceAll('~', '')}\n`);
    const found = retiredWordsIn(RETIRED, [planted]);
    expect(found, example).toEqual([expect.stringContaining('src/engine/planted.ts:2: ')]);
  }
});

test('a retired word in the name of a file is found', () => {
  const [{ examples } = { examples: [] }] = RETIRED;
  const name = `src/engine/${examples[0]?.replaceAll('~', '')}.ts`;
  expect(retiredWordsIn(RETIRED, [sourceFile(name, '\n')])).toEqual([expect.stringContaining(`${name}:1: `)]);
});

test('the glossary names the right words', () => {
  const glossary = readFileSync(`${ROOT}${GLOSSARY}`, 'utf8').toLowerCase();
  for (const word of [
    'node action',
    'reporter',
    'drain preview',
    'acknowledge',
    'clean up',
    'rollout',
    'status shard',
  ]) {
    expect(glossary).toContain(word);
  }
});
