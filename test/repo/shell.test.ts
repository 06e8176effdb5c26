/** Checks every shell script of the repository: a shell can read it, and shellcheck finds nothing. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cacheDirectory } from '../../tools/controlplane/build.ts';
import { filesOf } from './tree.ts';

const SCRIPTS = filesOf('{src,sandbox,test,tools}/**/*.sh', '.ci/run');
/** Of Debian's package, unpacked by .ci/run. */
const SHELLCHECK = join(cacheDirectory(process.env), '..', 'shellcheck/usr/bin/shellcheck');

test('a shell can read every script', () => {
  expect(SCRIPTS.length).toBeGreaterThan(10);
  for (const { path } of SCRIPTS.filter((file) => !file.text.includes('bash')))
    execFileSync('sh', ['-n', path]);
});

test('shellcheck finds nothing', (context) => {
  context.skip(
    !existsSync(SHELLCHECK),
    `no ${SHELLCHECK}: .ci/run unpacks Debian's package shellcheck there`,
  );
  const paths = SCRIPTS.map(({ path }) => path);
  expect(run(['--severity=warning', ...paths])).toBe('');
  expect(run(paths.filter((path) => path.startsWith('src/')))).toBe('');
  // A fault that it knows.
  expect(run(['--shell=sh', '-'], 'rm $1')).toContain('SC2086');
});

function run(args: readonly string[], input = ''): string {
  try {
    return execFileSync(SHELLCHECK, ['--format=gcc', ...args], { input, encoding: 'utf8' });
  } catch (error) {
    return (error as { stdout: string }).stdout;
  }
}
