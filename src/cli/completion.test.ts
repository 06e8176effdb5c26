/** Tests completion in each real shell: what it offers after the beginning of a command line. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { COMMANDS } from '../../test/support/commands.ts';
import { completionOf, SHELLS, type Shell } from './completion.ts';

/**
 * The code that each shell runs after our script. It prints the completions for the end of a command line, one per
 * line.
 */
const ASK: Readonly<Record<Shell, (words: readonly string[]) => string>> = {
  bash: (words) => `COMP_WORDS=(${quoted(words)}); COMP_CWORD=${words.length - 1}
_refit; printf '%s\\n' "\${COMPREPLY[@]}"`,
  // Does the same as `_bash_complete` of zsh. Its `compadd` removes completions that do not match the current word.
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

/** A script that replaces `refit`. For `refit why` it returns the nodes w1 and w2, otherwise the plan autopilot. */
const STAND_IN = `#!/bin/sh
[ "$1" = __complete ] || exit 9
echo 'REFIT_UNREACHABLE: not for people who press Tab' >&2
case "$2 $3" in
'why --plan') printf 'autopilot\\tPlan\\n:4\\n' ;;
'why '*) printf 'w1\\nw2\\n:4\\n' ;;
'pause '*) printf 'autopilot\\n:4\\n' ;;
*) exit 1 ;;
esac
`;

/** Returns the completions of the shell without --help, because fish does not offer it. */
function offered(shell: Shell, line: string): string[] {
  // In an empty directory, no shell can complete file names.
  const cwd = mkdtempSync(join(tmpdir(), 'refit-completion-'));
  onTestFinished(() => rmSync(cwd, { recursive: true }));
  const programs = mkdtempSync(join(tmpdir(), 'refit-completion-path-'));
  onTestFinished(() => rmSync(programs, { recursive: true }));
  writeFileSync(join(programs, 'refit'), STAND_IN, { mode: 0o755 });
  const words = line.split(' ');
  const script = [BEFORE[shell], completionOf(shell, COMMANDS), ASK[shell](words)].join('\n');
  const { stdout, stderr } = spawnSync(shell, [PLAIN[shell], '-c', script], {
    cwd,
    encoding: 'utf8',
    env: { ...process.env, PATH: `${programs}${delimiter}${process.env['PATH']}` },
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
  ['refit completion ', ['bash', 'fish', 'kubectl', 'zsh']],
  ['refit preview -f ', []],
  ['refit why w', ['w1', 'w2']],
  ['refit why --plan ', ['autopilot']],
  ['refit pause a', ['autopilot']],
  // For `refit hold`, the script fails, as `refit` fails if it reaches no cluster.
  ['refit hold w', []],
];

describe.each(SHELLS)('the completion in %s', (shell) => {
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
