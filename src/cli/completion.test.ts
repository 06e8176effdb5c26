/** Tests completion in each real shell: what it offers after the beginning of a command line. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { COMMANDS } from '../cmd/commands.ts';
import { completionOf, SHELLS, type Shell } from './completion.ts';

/** The code that each shell runs after our script. It prints the offers at the end of a command line, one on each line. */
const ASK: Readonly<Record<Shell, (words: readonly string[]) => string>> = {
  bash: (words) => `COMP_WORDS=(${quoted(words)}); COMP_CWORD=${words.length - 1}
_refit; printf '%s\\n' "\${COMPREPLY[@]}"`,
  // This does what _bash_complete of zsh does. Its compadd drops offers that do not match the line.
  zsh: (
    words,
  ) => `typeset -a COMP_WORDS; COMP_WORDS=(${quoted(words)}); COMP_CWORD=${words.length - 1}
words=("\${COMP_WORDS[@]}"); CURRENT=${words.length}; compgen -o default -F _refit -- ''`,
  fish: (words) => `complete -C ${quoted([words.join(' ')])}`,
};
const BEFORE: Readonly<Record<Shell, string>> = { bash: '', zsh: 'compdef() { :; }', fish: '' };
const PLAIN: Readonly<Record<Shell, string>> = { bash: '--norc', zsh: '-f', fish: '--no-config' };

function quoted(words: readonly string[]): string {
  return words.map((word) => `'${word}'`).join(' ');
}

/** Returns what the shell offers, without --help, which fish does not offer. */
function offered(shell: Shell, line: string): string[] {
  // In an empty directory, no shell can complete file names.
  const cwd = mkdtempSync(join(tmpdir(), 'refit-completion-'));
  onTestFinished(() => rmSync(cwd, { recursive: true }));
  const words = line.split(' ');
  const script = [BEFORE[shell], completionOf(shell, COMMANDS), ASK[shell](words)].join('\n');
  const { stdout, stderr } = spawnSync(shell, [PLAIN[shell], '-c', script], {
    cwd,
    encoding: 'utf8',
  });
  expect(stderr).toBe('');
  const offers = stdout.split('\n').map((text) => text.split('\t')[0] ?? '');
  return offers
    .filter((text) => text !== '' && text !== '--help' && text.startsWith(words.at(-1) ?? ''))
    .toSorted();
}

const LINES: readonly [string, string[]][] = [
  ['refit stat', ['status']],
  ['refit status --wa', ['--watch']],
  ['refit status -o ', ['json', 'text', 'wide', 'yaml']],
  ['refit status --dialect c', ['capi', 'cattle']],
  ['refit kubeadm ', ['apply', 'plan', 'restore-etcd']],
  ['refit kubeadm apply --y', ['--yes']],
  ['refit why w1 --pl', ['--plan']],
  ['refit completion ', ['bash', 'fish', 'zsh']],
  ['refit preview -f ', []],
];

describe.each(SHELLS)('%s', (shell) => {
  const isHere = spawnSync(shell, [PLAIN[shell], '-c', 'exit 0']).status === 0;
  test.for(LINES)('%s', ([line, wanted], context) => {
    context.skip(!isHere, `${shell} is not installed: apt-get install ${shell}`);
    expect(offered(shell, line)).toEqual(wanted);
  });
});

test('fish gets every command and option with its description', () => {
  const lines = completionOf('fish', COMMANDS).split('\n');
  expect(lines).toContain(
    "complete -c refit -n '__fish_seen_subcommand_from status' -l output -s o -r -f -a 'text wide json yaml' -d 'output format'",
  );
  for (const { name } of COMMANDS)
    expect(lines.some((line) => line.includes(` -f -a ${name} -d `))).toBe(true);
});
