/** Shows that one entry in the list is enough to add a command: it defines the command's place in the tree, its options, its help and its function. */

import { Argument, Option } from 'commander';
import { expect, test } from 'vitest';
import { RefitError } from '../util/errors.ts';
import { type CommandSpec, runProgram } from './program.ts';

const given: unknown[] = [];
const TOY: CommandSpec = {
  name: 'toy',
  summary: 'Plays with a node.',
  argument: new Argument('<node>', 'name of the node'),
  options: [new Option('--times <n>', 'how often').default('1')],
  notes: 'It is only a toy.',
  run: async (flags: { readonly times: string }, { argument }) => {
    given.push(argument, flags);
    return await Promise.resolve(7);
  },
};

async function run(...args: string[]): Promise<{ code: number; written: string }> {
  let written = '';
  const write = (text: string): void => {
    written += text;
  };
  const code = await runProgram(
    args,
    [TOY, { name: 'box', summary: 'Holds toys.', commands: [TOY] }],
    {
      abort: new AbortController().signal,
      write,
    },
  );
  return { code, written };
}

test('a command runs with its flags and its argument, and its exit code is that of the program', async () => {
  expect((await run('toy', 'w1', '--times', '3')).code).toBe(7);
  expect(given.splice(0)).toEqual(['w1', { times: '3' }]);
  expect((await run('box', 'toy', 'w1')).code).toBe(7);
  expect(given.splice(0)).toEqual(['w1', { times: '1' }]);
});

test('a group of commands may run, too, and an option behind its command belongs to the command', async () => {
  const options = [new Option('--times <n>', 'how often').default('1')];
  const group: CommandSpec = {
    ...TOY,
    name: 'box',
    argument: new Argument('[node]', 'node'),
    options,
    commands: [TOY],
  };
  const write = (): void => undefined;
  const call = async (...args: string[]) =>
    await runProgram(args, [group], { abort: new AbortController().signal, write });
  await call('box', 'toy', 'w1', '--times', '3');
  await call('box', '--times', '2');
  expect(given.splice(0)).toEqual(['w1', { times: '3' }, undefined, { times: '2' }]);
});

test('the help shows a command with its options and its notes', async () => {
  expect((await run('--help')).written).toMatch(
    /^ {2}toy \[options\] <node> +Plays with a node\.$/m,
  );
  const { written } = await run('toy', '--help');
  expect(written).toContain('--times <n>  how often (default: "1")');
  expect(written).toMatch(/It is only a toy\.\n$/);
});

test.each([
  ['nosuch', '--help'],
  ['help', 'nosuch'],
  ['box', 'nosuch', '-h'],
  ['box', 'help', 'nosuch'],
  ['help', 'box', 'nosuch'],
])('the help of a command that does not exist is a usage error: %s %s', async (...args) => {
  await expect(run(...args)).rejects.toMatchObject({
    code: 'REFIT_USAGE',
    message: "unknown command 'nosuch'",
  });
});

test('an unknown command says how to list those that exist', async () => {
  const error: unknown = await run('nosuch', '--help').catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(RefitError);
  expect((error as RefitError).text).toContain('(run `refit --help`)');
});

test.each([
  ['box', 'nosuch'],
  ['box', 'help', 'nosuch'],
  ['help', 'box', 'nosuch'],
])('an unknown command of a group names the commands of the group: %s %s', async (...args) => {
  const error: unknown = await run(...args).catch((thrown: unknown) => thrown);
  expect((error as RefitError).text).toMatch(/\(refit box takes one of: \w+(?:, \w+)*\)$/);
});

test.each([
  ['get', '`refit status`'],
  ['describe', '`refit why NODE`'],
  ['drain', '`refit preview`'],
])('the habit of kubectl %s names the command that is meant', async (command, meant) => {
  const error: unknown = await run(command, 'nodes').catch((thrown: unknown) => thrown);
  expect((error as RefitError).text).toContain(meant);
});

test('the options and arguments of a command are checked', async () => {
  await expect(run('toy', 'w1', '--time', '3')).rejects.toThrow("unknown option '--time'");
  await expect(run('toy')).rejects.toThrow("missing required argument 'node'");
  await expect(run('box')).rejects.toThrow('a command is missing');
});
