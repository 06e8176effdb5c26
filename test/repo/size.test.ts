/** Limits the size of files and of functions. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { FunctionSize } from './functions.ts';
import { functionSizes } from './functions.ts';
import { filesOf, isTest, linesOf } from './tree.ts';

const CODE = ['src', 'sandbox', 'test', 'tools', 'bench'];
const MOST_LINES_OF_FILE = 500;
const MOST_LINES_OF_FUNCTION = 80;

interface FileSize {
  readonly path: string;
  readonly lines: number;
}

/** One line for each violation. */
function filesTooLong(files: readonly FileSize[]): string[] {
  return files
    .filter((file) => file.lines > MOST_LINES_OF_FILE)
    .map((file) => `${file.path} has ${file.lines} lines, ${MOST_LINES_OF_FILE} is the limit`);
}

function functionsTooLong(functions: readonly FunctionSize[]): string[] {
  return functions
    .filter(({ lines }) => lines > MOST_LINES_OF_FUNCTION)
    .map(({ at, lines }) => `${at}: ${lines} lines, ${MOST_LINES_OF_FUNCTION} is the limit`);
}

test('no file is too long', () => {
  const files = filesOf(...CODE.map((folder) => `${folder}/**/*.ts`));
  expect(files.filter(isTest).length).toBeGreaterThan(0);
  expect(filesTooLong(files.map((file) => ({ path: file.path, lines: linesOf(file) })))).toEqual(
    [],
  );
});

test('a file of 501 lines is found', () => {
  expect(filesTooLong([{ path: 'a.ts', lines: 501 }])).toEqual([
    'a.ts has 501 lines, 500 is the limit',
  ]);
});

test('no function is too long', () => {
  const functions = functionSizes(CODE);
  expect(functionsTooLong(functions)).toEqual([]);
});

test('a function of 81 lines is found, in every form', () => {
  const folder = mkdtempSync(join(tmpdir(), 'refit-size-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const body = `${'void 0;\n'.repeat(79)}}`;
  const forms = [
    `async function f() {\n${body}`,
    `const f = () => {\n${body};`,
    `class C {\nm() {\n${body}\n}`,
  ];
  for (const [index, text] of forms.entries()) writeFileSync(join(folder, `${index}.ts`), text);
  expect(functionsTooLong(functionSizes([folder]))).toHaveLength(3);
});
