/** Proves that a script runs if /run has room for the names of its files, but not for their content, and that its output is short. */
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { runProgram } from '../../../util/run-program.ts';
import { detached } from './scripts.ts';

/** A replacement of mktemp that creates every file in /run as a link to /dev/full. */
const FULL = `#!/bin/sh
case $1 in
*/run/*) file=$(/usr/bin/mktemp -u "$1") && ln -s /dev/full "$file" && echo "$file" ;;
*) exec /usr/bin/mktemp "$@" ;;
esac
`;

test('a full /run: script and log go to the disk', async () => {
  const root = await mkdtemp(join(tmpdir(), 'refit-detached-'));
  onTestFinished(async () => await rm(root, { recursive: true }));
  for (const folder of ['run', 'bin']) await mkdir(join(root, folder));
  await writeFile(join(root, 'bin/mktemp'), FULL, { mode: 0o755 });
  const env = { PATH: `${join(root, 'bin')}:${process.env['PATH']}`, REFIT_ROOT: root };
  const said = execFileSync('sh', ['-s'], { env, input: detached('set -e; echo it ran', 5) });
  expect(said.toString()).toBe('it ran\n');
  expect(await readdir(join(root, 'run'))).toEqual([]);
});

test('a step that prints a very long line ends with its own exit code, so that nobody takes it for a lost connection and runs it again', async () => {
  const root = await mkdtemp(join(tmpdir(), 'refit-detached-'));
  onTestFinished(async () => await rm(root, { recursive: true }));
  await mkdir(join(root, 'run'));
  const body = "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo 'why it failed'; exit 3";
  const env = { PATH: process.env['PATH'], REFIT_ROOT: root };
  const { code, stdout } = await runProgram('sh', ['-s'], {
    input: detached(body, 5),
    as: { env },
  });
  expect([code, stdout.length < 100_000]).toEqual([3, true]);
  expect(stdout).toMatch(/x\nwhy it failed\n$/);
});
