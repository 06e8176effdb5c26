/**
 * Tests that the command prints the next step after each of thirty mistakes, and that this step exists. The command
 * runs without PATH, without a home directory and without the documentation.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { BUILT } from '../../sandbox/refit.ts';
import { type CommandSpec, runProgram } from '../../src/cli/program.ts';
import { EXIT } from '../../src/util/errors.ts';
import { COMMANDS } from '../support/commands.ts';

const CALL = { abort: new AbortController().signal, write: () => undefined };
/** No server listens at this address. */
const DEAD = 'clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]';
const FILES: Readonly<Record<string, string>> = {
  'broken.yaml': 'a: [',
  'empty.yaml': '',
  'other.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n',
  'no-context': `${DEAD}\ncontexts: []\nusers: []\n`,
  dead: `${DEAD}\ncontexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\nusers: [{name: u, user: {}}]\n`,
};

const MISTAKES: readonly string[] = [
  'frobnicate',
  'get nodes',
  'describe plan',
  'logs w1',
  'apply -f plan.yaml',
  'delete plan',
  'rollout status',
  'drain w1',
  'status --nope',
  'status --kubeconfig missing',
  'status --kubeconfig broken.yaml',
  'status --kubeconfig no-context',
  'status --kubeconfig dead',
  'why w1 --kubeconfig dead --context nope',
  'why --plan',
  'validate',
  'validate missing.yaml',
  'validate broken.yaml',
  'validate empty.yaml',
  'validate other.yaml',
  'preview -f missing.yaml',
  'retry',
  'start --now',
  'start --now --for 9000h',
  'approve',
  'pause a --plan b',
  'rollback',
  'kubeadm',
  'kubeadm plan -m missing.yaml',
  'install capi',
  'install controller --dry-run maybe',
  'install controller --apply --kubeconfig dead',
  'status --as-group g --kubeconfig dead',
  'completion tcsh',
  'bundle made',
];

let directory = '';
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'refit-next-steps-'));
  for (const [name, text] of Object.entries(FILES))
    writeFileSync(join(directory, name), text, { mode: 0o600 });
});
afterAll(() => rmSync(directory, { recursive: true }));

/** Returns the command that the words call, with the words of its name. */
function commandIn(words: readonly string[]): { path: string[]; spec: CommandSpec | undefined } {
  const path: string[] = [];
  let spec: CommandSpec | undefined;
  for (const word of words) {
    const found = (spec ? (spec.commands ?? []) : COMMANDS).find(({ name }) => name === word);
    if (!found) break;
    spec = found;
    path.push(word);
  }
  return { path, spec };
}

const flagsOf = (spec: CommandSpec | undefined): string[] => [
  '--help',
  ...(spec?.options ?? []).flatMap(({ long, short }) => [long ?? [], short ?? []].flat()),
];

/** Returns what is wrong with a command that an answer names, such as `refit validate -f FILE`. */
function problemOf(line: string): string[] {
  const words = line.split(' ').slice(1);
  const { spec, path } = commandIn(words);
  if (!spec && words[0] !== '--help') return [`${line}: no such command`];
  const flags = words.slice(path.length).filter((word) => word.startsWith('-'));
  return flags.filter((flag) => !flagsOf(spec).includes(flag)).map((flag) => `${line}: ${flag}`);
}

describe.each(MISTAKES)('refit %s', (mistake) => {
  test('names a next step that exists', async () => {
    const words = mistake.split(' ');
    const { status, stderr } = spawnSync(process.execPath, [process.env[BUILT] ?? '', ...words], {
      cwd: directory,
      encoding: 'utf8',
      env: {},
    });
    expect([EXIT.failed, EXIT.usage, EXIT.unreachable]).toContain(status);
    // The answer ends with the next step in brackets.
    const [, step = ''] = /^REFIT_[A-Z_]+: [^\n]*\((.+)\)$/m.exec(stderr) ?? [];
    expect(step, stderr).not.toBe('');
    const commands = [...stderr.matchAll(/`(refit [^`]+)`/g)].map(([, line = '']) => line);
    expect(commands.flatMap(problemOf)).toEqual([]);
    // A user who has only the command has no files of the repository.
    expect(stderr).not.toMatch(/\b(?:docs|deploy|examples)\//);
    const { path, spec } = commandIn(words);
    if (step.includes('the same command with `--help`'))
      expect(await runProgram([...path, '--help'], COMMANDS, CALL)).toBe(0);
    // If the step names an option, this command has the option.
    const options = [...step.matchAll(/(?<![\w`-])(--[a-z-]+)/g)].map(([, flag = '']) => flag);
    expect(options.filter((flag) => !flagsOf(spec).includes(flag))).toEqual([]);
  });
});
