/**
 * Tests that programs which confine another program are searched for in the folders of the host, whatever the
 * environment of the agent is.
 */
import { spawnSync } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { testUnless, whyNoProgram } from '../../../test/support/left-out.ts';
import { confinementFor } from './confine.ts';

test('a program outside of /bin and /usr/bin is found, and named by its path', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'refit-confine-'));
  onTestFinished(async () => await rm(folder, { recursive: true }));
  const program = join(folder, 'setpriv');
  await writeFile(program, '#!/bin/sh\nshift\nexec "$@"\n');
  await chmod(program, 0o755);
  const { prefix, missing } = await confinementFor(undefined, [folder]);
  expect(prefix).toEqual([program, '--no-new-privs']);
  expect(missing).toEqual(['keyctl']);
  expect((await confinementFor(undefined, [])).missing).toEqual(['setpriv', 'keyctl']);
});

testUnless(whyNoSession())(
  'a confined program cannot read a key of the session of the agent',
  async () => {
    const user = process.getuid?.() === 0 ? 4_000_000_000 : undefined;
    const { prefix, missing } = await confinementFor(user, process.env['PATH']?.split(':'));
    expect(missing).not.toContain('keyctl');
    expect(readInSession([])).toBe('secret');
    expect(readInSession(prefix)).toBe('');
  },
);

/**
 * Returns the reason why this host has no session keyring, or undefined if it has one. Some containers forbid keyrings.
 */
function whyNoSession(): string | undefined {
  const why = whyNoProgram('keyctl', 'keyutils');
  if (why !== undefined) return why;
  const { status } = spawnSync('keyctl', ['session', '-', 'true']);
  return status === 0 ? undefined : 'this host forbids session keyrings';
}

/**
 * Returns the key in the session keyring of the caller as a program reads it; empty if the program cannot read it.
 * `prefix` confines the program.
 */
function readInSession(prefix: readonly string[]): string {
  const add = 'keyctl add user refit-test-key secret @s >&2';
  const read = 'keyctl pipe "$(keyctl request user refit-test-key)"';
  // The owner of the key and every process that possesses the keyring may read the key.
  const program = [...prefix, 'sh', '-c', read];
  const caller = ['session', '-', 'sh', '-c', `${add}; exec "$@"`, 'sh'];
  return spawnSync('keyctl', [...caller, ...program], { encoding: 'utf8' }).stdout;
}
