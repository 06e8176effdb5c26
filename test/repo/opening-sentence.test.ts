/** Checks that every file opens with a sentence that says what it is for. */
import { expect, test } from 'vitest';
import { filesOf } from './tree.ts';

/** Only the interpreter line may precede the opening comment. */
const OPENING = /^(?:#!.*\n)?\/\*\*([\s\S]*?)\*\//;

/** Whether a documentation comment comes first and holds a sentence: a capital, some words, a full stop. */
function opensWithSentence(text: string): boolean {
  const comment =
    OPENING.exec(text)?.[1]
      ?.replaceAll(/\s+(?:\* )?/g, ' ')
      .trim() ?? '';
  return /^[A-Z].{19,}\./.test(comment);
}

test('every file opens with a sentence that says what it is for', () => {
  const files = filesOf('{src,sandbox,test,tools,bench}/**/*.ts', '*.ts');
  expect(files.length).toBeGreaterThan(0);
  expect(files.filter(({ text }) => !opensWithSentence(text)).map(({ path }) => path)).toEqual([]);
});

test.each([
  ['no comment', "import { a } from './a.ts';\n"],
  ['a comment for the linter', '/* global */\nconst a = 1;\n'],
  [
    'a sentence further down',
    'const a = 1;\n/** Counts from one, and explains what follows from it. */\n',
  ],
  ['no sentence', '/** ok */\n'],
  ['a comment that says nothing', '/** The clock. */\n'],
])('%s: found', (_, text) => {
  expect(opensWithSentence(text)).toBe(false);
});

test.each([
  '/** Reads the clock, and fakes it for tests. */\n',
  '#!/usr/bin/env node\n/**\n * Starts the agent\n * on a node.\n */\n',
])('%j is one', (text) => {
  expect(opensWithSentence(text)).toBe(true);
});
