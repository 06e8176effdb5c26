/** Limits the size of files, of functions, and of each folder of the product. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { FunctionSize } from './functions.ts';
import { functionSizes } from './functions.ts';
import { filesOf, isTest, linesOf, percentile, productFiles } from './tree.ts';

/** Lines that the product may have, a little more than it has. To raise one, give the reason in docs/internals/size.md. */
const LIMITS: Readonly<Record<string, number>> = {
  'src/agent': 5_692,
  'src/api': 929,
  'src/cli': 4_705,
  'src/cmd': 947,
  'src/dialects': 312,
  'src/dialects/autopilot': 973,
  'src/dialects/capi': 2_471,
  'src/dialects/cattle': 2_076,
  'src/dialects/kubeadm': 2_124,
  'src/drain': 822,
  'src/engine': 5_543,
  'src/http': 307,
  'src/kube': 3_026,
  'src/kubeadm': 1_036,
  'src/process': 294,
  'src/runtime': 801,
  'src/signal': 579,
  'src/updates': 1_822,
  'src/install': 828,
  'src/util': 838,
  'src/versions': 467,
};

const CODE = ['src', 'sandbox', 'test', 'tools', 'bench'];

interface FileSize {
  readonly path: string;
  readonly lines: number;
}

/** One line for each violation. */
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

test.each(Object.entries(LIMITS))('%s has at most %i lines', (folder, limit) => {
  expect(linesBelow(folder)).toBeGreaterThan(0);
  expect(tooLarge(folder, linesBelow(folder), limit)).toEqual([]);
});

test('every file of the product lies below one limit', () => {
  const limited = Object.keys(LIMITS).reduce((sum, folder) => sum + linesBelow(folder), 0);
  expect(limited).toBe(product.reduce((sum, { lines }) => sum + lines, 0));
});

test('a folder that grew: found, with what to do', () => {
  expect(tooLarge('src/util', 11, 10)).toEqual([
    'src/util has 11 lines, 10 is the limit: write less, or raise the limit in test/repo/size.test.ts and say why in docs/internals/size.md',
  ]);
});

function tooLarge(folder: string, lines: number, limit: number): string[] {
  if (lines <= limit) return [];
  const advice = 'write less, or raise the limit in test/repo/size.test.ts and say why in docs/internals/size.md';
  return [`${folder} has ${lines} lines, ${limit} is the limit: ${advice}`];
}

/** Tests are not counted. For `src/dialects` only the files that no dialect owns count. */
function linesBelow(folder: string): number {
  const own = folder === 'src/dialects' ? /^src\/dialects\/[^/]+$/ : new RegExp(`^${folder}/`);
  return product.filter(({ path }) => own.test(path)).reduce((sum, { lines }) => sum + lines, 0);
}
