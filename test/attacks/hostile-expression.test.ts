/**
 * Tests that the author of a policy cannot end the controller, or use up its memory, with an expression of a health
 * check. V8 ends the process if an operation needs more than it can allocate.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const EVALUATE = join(import.meta.dirname, 'evaluate-expressions.ts');
/** The most KiB that the process may use. It uses about 110,000 before it evaluates anything. */
const MOST_KIB = 400_000;
/** A usual expression, which must still be evaluated in the same process. */
const USUAL = 'object.list.size() == 20000';

const doubled = (times: number, value = '["ab"]'): string => value + '.map(a, a + a)'.repeat(times);
const nested = (times: number, step: string): string => `[1]${step.repeat(times)}`;

const TOO_LARGE = /"stopped".*it computes a value of more than 4194304 characters or elements"/;
const STOPPED = /"stopped".*the evaluation was stopped: it /;

test.each<[string, string, RegExp]>([
  ['a text that is doubled and then split', `${doubled(27)}[0].split('').size() > 0`, TOO_LARGE],
  ['a text that is doubled and then measured', `${doubled(27)}[0].size() > 0`, TOO_LARGE],
  [
    'a text that is doubled in a variable',
    `cel.bind(a, ${doubled(27)}, a[0].size() > 0)`,
    TOO_LARGE,
  ],
  ['a list that is doubled', `${doubled(27, '[["ab"]]')}[0].size() > 0`, STOPPED],
  ['bytes that are doubled', `${doubled(27, '[b"ab"]')}[0].size() > 0`, TOO_LARGE],
  [
    'a list that contains itself twice',
    `dyn(${nested(27, '.map(a, [a, a])')}) == dyn([1])`,
    TOO_LARGE,
  ],
  [
    'a mapping that contains itself twice',
    `dyn(${nested(27, '.map(a, {"a": a, "b": a})')}) == dyn([1])`,
    TOO_LARGE,
  ],
  [
    'a list as the key of a mapping',
    `${nested(27, '.map(a, [a, a])')}.all(a, {dyn(a): 1}.size() > 0)`,
    TOO_LARGE,
  ],
  ['an error that CEL ignores', `${doubled(27)}[0].size() > 0 || true`, TOO_LARGE],
  [
    'an error that a macro ignores',
    `[1, 2].exists(b, b == 2 || ${doubled(27)}[0].size() > 0)`,
    TOO_LARGE,
  ],
  [
    'a long text between the elements of a list',
    'object.list.map(a, "a").join(object.text).size() > 0',
    /"stopped".*it uses a method on values that are too large/,
  ],
  [
    'the same long text in a list many times',
    'object.list.map(a, object.text).join().size() > 0',
    TOO_LARGE,
  ],
  [
    'a long text that is sought in a long text',
    `(object.text + object.text).contains(object.text + "b")`,
    /"stopped".*it uses a method on values that are too large/,
  ],
  ['many long texts', 'object.list.all(a, [object.text + string(a)].size() > 0)', STOPPED],
  ['bytes of many long texts', 'object.list.map(a, bytes(object.text).size()).size() > 0', STOPPED],
  [
    'nested macros that create lists',
    'object.list.map(a, object.list.map(b, object.list.filter(c, true))).size() > 0',
    STOPPED,
  ],
  [
    'nested macros that create mappings',
    'object.list.map(a, object.list.map(b, {"a": [a, b]})).size() > 0',
    STOPPED,
  ],
  [
    'a regular expression that tries every combination',
    '(object.text + "!").matches("^(a+)+$")',
    STOPPED,
  ],
  [
    'a regular expression that repeats a repetition',
    `object.text.matches("((((a{999}){999}){999}){999}|b)*c")`,
    /"(?:stopped|error|value)"/,
  ],
  [
    'a regular expression that remembers each character',
    'object.text.matches("^(a|b)*c$")',
    /"(?:stopped|error|value)"/,
  ],
  [
    'a type that contains itself twice',
    `${nested(27, '.map(a, {a: a})')}.size() > 0`,
    /^the type of a part of the expression is too long/,
  ],
  [
    'parentheses that are nested deeply',
    `${'('.repeat(900)}true${')'.repeat(900)}`,
    /^Exceeded maxDepth/,
  ],
  ['a list with many elements', `[${'1,'.repeat(1_000)}1].size() > 0`, /^Exceeded maxAstNodes/],
])(
  'an expression with %s costs its check, and not the process',
  async (_what, expression, expected) => {
    const { stdout } = await promisify(execFile)(process.execPath, [EVALUATE, expression, USUAL]);
    const [message, usual, memory] = stdout.trim().split('\n');
    expect(message).toMatch(expected);
    expect(usual).toContain('"value":true');
    expect(Number(memory)).toBeLessThan(MOST_KIB);
  },
);
