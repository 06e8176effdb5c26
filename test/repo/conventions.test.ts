/** Tests that the conventions hold in the whole tree, and that each check can fail. */
import { expect, test } from 'vitest';
import { ambiguousTypes, breaches, CONVENTIONS, namelessFiles } from './conventions.ts';
import { filesOf, productFiles, sourceFile } from './tree.ts';

/** All files that people wrote. Recordings of real clusters and lock files are left out. */
const written = filesOf(
  '{src,examples,sandbox,test,tools,bench,docs,deploy,.ci}/**/*.{ts,md,yaml,sh}',
  '*.{ts,md,json}',
  '.ci/run',
).filter(({ path }) => !path.startsWith('test/fixtures/') && path !== 'package-lock.json');

/** One path in each part of the tree to which a convention applies. */
const places = [
  'src/engine/planted.ts',
  'src/util/planted.ts',
  'test/model/planted.ts',
  'docs/planted.md',
];

test.each(CONVENTIONS)('$title', (convention) => {
  expect(breaches(convention, written)).toEqual([]);
});

test.each(CONVENTIONS)('a breach is found: $title', (convention) => {
  const place = places.find((path) => convention.holdsIn(sourceFile(path, ''))) ?? 'nowhere';
  for (const example of convention.examples) {
    const planted = sourceFile(place, `\n${example.replaceAll('~', '')}\n`);
    expect(breaches(convention, [planted]), example).toEqual([`${place}:2`]);
  }
});

test('every file has a name that says something', () => {
  expect(
    namelessFiles(written.filter(({ path }) => path.endsWith('.ts')).map(({ path }) => path)),
  ).toEqual([]);
});

test('names that say nothing: found', () => {
  const planted = [
    'src/a/utils.ts',
    'src/a/helper.ts',
    'src/a/index.ts',
    'src/a/nodeLease.ts',
    'src/a/Queue.ts',
  ];
  expect(namelessFiles([...planted, 'src/a/node-lease.test.ts', 'vitest.config.ts'])).toEqual(
    planted,
  );
});

test('one exported type name has one meaning', () => {
  expect(ambiguousTypes(productFiles())).toEqual([]);
});

test('a type that two files define: found', () => {
  const planted = ['type T = 1', 'interface T {}', 'class T {}'].map((text, index) =>
    sourceFile(`src/${['util', 'kube', 'api'][index]}/planted.ts`, `export ${text}\n`),
  );
  expect(ambiguousTypes(planted)).toEqual([
    'T is defined in src/util/planted.ts and src/kube/planted.ts',
  ]);
});

test('a test asserts something', () => {
  const silent = (text: string) => /\b(?:it|test)\(/.test(text) && !/\bexpect|\bassert/.test(text);
  const tests = written.filter(({ path }) => path.endsWith('.test.ts'));
  expect(tests.filter(({ text }) => silent(text)).map(({ path }) => path)).toEqual([]);
  expect(silent("test('a', () => run());")).toBe(true);
});
