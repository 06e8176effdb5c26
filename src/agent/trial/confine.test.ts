/** Programs that confine another one are sought in the folders of the host, whatever environment the agent has. */
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
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
