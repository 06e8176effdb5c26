/** Tests completion in bash itself: what each line that a person has begun may go on with. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { COMMANDS } from '../cmd/commands.ts';
import { completionOf } from './completion.ts';

/** What bash offers at the end of the line. */
function offered(line: string): string[] {
  const words = line.split(' ');
  const script = `${completionOf('bash', COMMANDS)}
COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}
_refit; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr } = spawnSync('bash', ['-c', script], { encoding: 'utf8' });
  expect(stderr).toBe('');
  return stdout.split('\n').filter(Boolean);
}

test.each<[string, string[]]>([
  ['refit stat', ['status']],
  ['refit status --wa', ['--watch']],
  ['refit status -o ', ['text', 'wide', 'json', 'yaml']],
  ['refit status --dialect c', ['cattle', 'capi']],
  ['refit kubeadm ', ['plan', 'apply', '--help']],
  ['refit kubeadm apply --y', ['--yes']],
  ['refit why w1 --pl', ['--plan']],
  ['refit completion ', ['bash', 'zsh', 'fish', '--help']],
  // bash completes names of files.
  ['refit preview -f ', []],
])('%s', (line, wanted) => {
  expect(offered(line)).toEqual(wanted);
});

test.for(['zsh', 'fish'] as const)('%s takes the script', (shell, context) => {
  context.skip(!existsSync(`/usr/bin/${shell}`), `no /usr/bin/${shell}`);
  const { status, stderr } = spawnSync(shell, ['--no-execute'], {
    input: completionOf(shell, COMMANDS),
    encoding: 'utf8',
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
});

test('fish gets every command and option with its description', () => {
  const lines = completionOf('fish', COMMANDS).split('\n');
  expect(lines).toContain(
    "complete -c refit -n '__fish_seen_subcommand_from status' -l output -s o -r -f -a 'text wide json yaml' -d 'output format'",
  );
  for (const { name } of COMMANDS) expect(lines.some((line) => line.includes(` -f -a ${name} -d `))).toBe(true);
});
