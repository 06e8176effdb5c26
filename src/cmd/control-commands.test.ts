/** Shows how the controls read the name of a plan, and what they refuse before they ask the API server. */
import { expect, test } from 'vitest';
import { COMMANDS } from '../../test/support/commands.ts';
import { runProgram } from '../cli/program.ts';

async function errorOf(line: string): Promise<string> {
  return await errorOfWords(line.split(' '));
}

async function errorOfWords(words: readonly string[]): Promise<string> {
  const call = { abort: AbortSignal.abort(), write: () => undefined };
  const thrown: unknown = await runProgram(words, COMMANDS, call).catch((error: unknown) => error);
  return thrown instanceof Error ? thrown.message : 'no error';
}

test.each([
  ['pause a --plan b', 'the plan is named twice: a, and --plan b; name it once'],
  ['start a --plan b --now --for 2h', 'the plan is named twice: a, and --plan b; name it once'],
  ['retry a --plan b --skipped', 'the plan is named twice: a, and --plan b; name it once'],
  [
    'retry',
    'name the node to retry, or a plan whose hook failed: refit retry PLAN; or use --skipped',
  ],
  [
    'start a --now --for 169h',
    "option '--for <time>' argument '169h' is invalid. Write hours or minutes, such as 2h or 90m, and at most 168h (7 days).",
  ],
  [
    'hold w1 --for 2h --until 2030-01-01T00:00:00Z',
    "option '--for <time>' cannot be used with option '--until <time>'",
  ],
  ['hold w1 --until tomorrow', '--until is "tomorrow": write a time in RFC 3339, such as '],
  ['hold w1 --until 2001-01-01T00:00:00Z', '--until is 2001-01-01T00:00:00Z, which has passed'],
  ['pause --kubeconfig none --as-group a', '--as-group needs the name of a user, too'],
  [
    'pause --dry-run maybe',
    "option '--dry-run <how>' argument 'maybe' is invalid. Allowed choices are server, client.",
  ],
])('refit %s is refused', async (line, message) => {
  expect(await errorOf(line)).toContain(message);
});

const BLANK_REASON = '--reason is empty: give it a value, or leave it out';

test.each([
  ['abort a', '--reason', BLANK_REASON],
  ['rollback a', '--reason', BLANK_REASON],
  ['start a --now --for 2h', '--reason', BLANK_REASON],
  ['hold w1', '--reason', BLANK_REASON],
  ['approve a --wave 2', '--reason', BLANK_REASON],
  ['accept a --check pods', '--reason', BLANK_REASON],
  ['accept a', '--check', '--check is empty: give it a value'],
  ['abort', '--plan', '--plan is empty: give it a value, or leave it out'],
  ['rollback a', '--url', '--url is empty: give it a value, or leave it out'],
])('refit %s with an empty or blank %s is refused', async (line, option, message) => {
  expect(await errorOfWords([...line.split(' '), option, ''])).toBe(message);
  expect(await errorOfWords([...line.split(' '), option, ' \t'])).toBe(message);
});

test.each([
  ['pause', 'the argument plan is empty: give it a value, or leave it out'],
  ['unhold', 'the argument node is empty: give it a value'],
])('refit %s with an empty argument is refused', async (command, message) => {
  expect(await errorOfWords([command, ''])).toBe(message);
});
