/** Proves that each assignment is a statement of its own, which gives one value to one name. */
import { expect, test } from 'vitest';
import { breachesIn } from './assignments.ts';
import { filesOf } from './tree.ts';

const CODE = ['src', 'sandbox', 'test', 'tools', 'bench'];

const files = filesOf('*.ts', ...CODE.map((folder) => `${folder}/**/*.ts`));

test('each assignment is a statement, and gives one value to one name or swaps two', () => {
  expect(files.length).toBeGreaterThan(1_000);
  const breaches = files.flatMap(({ path, text }) => {
    const { paired, inline } = breachesIn(text);
    return [...paired, ...inline].map((each) => `${path}:${each}`);
  });
  expect(breaches).toEqual([]);
});

test.each([
  ['constants', 'const [first, second] = [1, 2];'],
  ['variables with types', 'let [first, second]: [number, string] = [1, ""];'],
  ['constants of literal types', 'const [first, second] = ["a", "b"] as const;'],
  ['new values of variables', '[first, second] = [1, 2];'],
  ['new values of members', '[this.first, at.second] = [1, read()];'],
  ['a value that depends on another one', '[first, second] = [second, first % second];'],
  ['a variable of a loop', 'for (let [at, told] = [9, ""]; ; at--) look(at, told);'],
  ['several values inside an expression', 'const reset = () => void ([first, second] = [0, 1]);'],
  ['an object', 'const { first, second } = { first: 1, second: 2 };'],
])('several names at once, found: %s', (_name, code) => {
  expect(breachesIn(code).paired).toHaveLength(1);
});

test.each([
  ['a swap of variables', '[first, second] = [second, first];'],
  ['a swap of members', '[list[0], list[at]] = [list[at], list[0]];'],
  ['a returned tuple', 'const [first, second] = pairOf(text);'],
  ['a tuple of several answers', 'const [first, second] = await Promise.all([one(), two()]);'],
  ['equal work on several values', 'const [first, second] = ["a", "b"].map(read);'],
  ['the beginning of a list', 'const [program, ...rest] = [...prefix, "/bin/sh"];'],
  ['an object with defaults', 'const { clock, log } = { ...DEFAULTS, ...given };'],
])('several names at once, no breach: %s', (_name, code) => {
  expect(breachesIn(code).paired).toEqual([]);
});

test.each([
  ['an argument', 'stop((late = true));'],
  ['a returned value', 'function read() { return (known ??= load()); }'],
  ['an arrow function', 'stream.on("data", (chunk) => (text += chunk));'],
  ['a value that nobody reads', 'const end = () => void (code = 1);'],
  ['a condition', 'while ((line = next())) print(line);'],
  ['a chain', 'first = second = 1;'],
  ['an initial value', 'const all = (known ??= []);'],
  ['two in a row', 'for (;; at++, now += 5) look();'],
])('inside an expression, found: %s', (_name, code) => {
  expect(breachesIn(code).inline).toHaveLength(1);
});

test('inside an expression, no breach: a statement, a loop, a default', () => {
  const code = [
    'let at = 0;',
    'at = 1;',
    'at ??= 2;',
    'if (isLate) at = 3;',
    'for (at = 0; at < 9; at += 2) look();',
    'function look({ text = "" } = {}) { return text; }',
    'class Place { readonly at = 1; }',
  ];
  expect(breachesIn(code.join('\n')).inline).toEqual([]);
});

test('a breach is told with its line', () => {
  expect(breachesIn('run();\nconst [first, second] = [\n  1,\n  2,\n];').paired).toEqual([
    '2: [first, second] = [ 1, 2, ]',
  ]);
});
