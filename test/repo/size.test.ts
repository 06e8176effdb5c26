/** Owns the bounds on size: of files, of functions, and of the whole. */
import { globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { FunctionSize } from './functions.ts';
import { functionSizes } from './functions.ts';
import { filesOf, isTest, linesOf, percentile, productFiles } from './tree.ts';

/** Beside what is shipped: rigs and tools are read too. */
const CODE = ['src', 'sandbox', 'test', 'tools', 'bench'];

interface FileSize {
  readonly path: string;
  readonly lines: number;
}

/** What is too long, as lines for people. */
function filesTooLong(files: readonly FileSize[]): string[] {
  const lines = files.map((file) => file.lines);
  const median = percentile(lines, 0.5);
  const most = percentile(lines, 0.9);
  return [
    ...files.filter((file) => file.lines > 500).map((file) => `${file.path} has ${file.lines} lines, 500 is the limit`),
    ...(most > 300 ? [`one file in ten has more than ${most - 1} lines, 300 is the limit`] : []),
    ...(median > 100 ? [`half of the files have more than ${median - 1} lines, 100 is the limit`] : []),
  ];
}

function functionsTooLong(functions: readonly FunctionSize[]): string[] {
  const most = percentile(
    functions.map(({ lines }) => lines),
    0.9,
  );
  return [
    ...functions.filter(({ lines }) => lines > 80).map(({ at, lines }) => `${at}: ${lines} lines, 80 is the limit`),
    ...(most > 35 ? [`one function in ten has more than ${most - 1} lines, 35 is the limit`] : []),
  ];
}

const product = productFiles().map((file) => ({ path: file.path, lines: linesOf(file) }));

test('no file is too long, and most are short', () => {
  expect(filesTooLong(product)).toEqual([]);
});

test('rigs, tools and tests stay under the hard limit too', () => {
  const others = filesOf(...CODE.map((folder) => `${folder}/**/*.ts`));
  const long = others.filter((file) => linesOf(file) > 500).map(({ path }) => path);
  expect(others.filter(isTest).length).toBeGreaterThan(0);
  expect(long).toEqual([]);
});

test.each([
  ['one long file', [501, 1, 1, 1, 1, 1, 1, 1, 1, 1], /^f0 has 501 lines/],
  ['too many rather long files', [301, 301, 1, 1, 1, 1, 1, 1, 1, 1], /one file in ten/],
  ['a middle that is too long', [101, 101, 1], /half of the files/],
])('%s: found', (_, lines, finding) => {
  const found = filesTooLong(lines.map((count, index) => ({ path: `f${index}`, lines: count })));
  expect(found).toEqual([expect.stringMatching(finding)]);
});

test('no function is too long, and most are short', () => {
  expect(functionsTooLong(functionSizes(CODE))).toEqual([]);
});

test('a function of 81 lines: found, in every form', () => {
  const folder = mkdtempSync(join(tmpdir(), 'refit-size-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const body = `${'void 0;\n'.repeat(79)}}`;
  const forms = [`async function f() {\n${body}`, `const f = () => {\n${body};`, `class C {\nm() {\n${body}\n}`];
  for (const [index, text] of forms.entries()) writeFileSync(join(folder, `${index}.ts`), text);
  expect(functionsTooLong(functionSizes([folder]).filter(({ lines }) => lines > 80))).toHaveLength(4);
});

test('many functions of more than 35 lines: found', () => {
  expect(functionsTooLong([5, 36, 36].map((lines) => ({ at: 'f', lines })))).toEqual([
    expect.stringMatching('more than 35 lines'),
  ]);
});

test('the core stays small', () => {
  // The stand-in cluster serves tests and the first minute: no process of a real cluster loads it. Dialects have their own bound.
  const core = product.filter(({ path }) => !path.startsWith('src/dialects/'));
  expect(totalOf(core)).toBeGreaterThan(0);
  expect(totalOf(core)).toBeLessThan(22_000);
});

test.each(globSync('src/dialects/*/').map((folder) => basename(folder)))(
  'the dialect %s stays a mapping',
  (dialect) => {
    const own = product.filter(({ path }) => path.startsWith(`src/dialects/${dialect}/`));
    expect(totalOf(own)).toBeGreaterThan(0);
    expect(totalOf(own)).toBeLessThan(1_600);
  },
);

function totalOf(files: readonly FileSize[]): number {
  return files.reduce((sum, { lines }) => sum + lines, 0);
}
