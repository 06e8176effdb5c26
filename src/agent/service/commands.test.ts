/**
 * Tests that commands end in time and report what went wrong. Also tests that the start of a service continues after
 * the agent has stopped waiting for it.
 */

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { SkewedClock } from '../../../test/support/clock/skewed-clock.ts';
import { systemClock } from '../../util/clock.ts';
import { createCommands } from './commands.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-commands-'));
});
afterEach(async () => await rm(directory, { recursive: true }));

const commands = createCommands(process.env, systemClock);
/** With this clock, all waits end at once. */
const impatient = createCommands(process.env, new SkewedClock(systemClock, { pauses: 0 }));
const sh = ['/bin/sh', '-c'] as const;

test('the answer of a command is what it printed', async () => {
  expect(await commands.ask(...sh, 'echo a; echo b; echo c >&2')).toBe('a\nb\n');
});

test.each([
  ['echo no such unit >&2; exit 5', 'ended with code 5: no such unit'],
  ['echo only this; exit 1', 'ended with code 1: only this'],
  ['kill -9 $$', 'ended with code null'],
])(
  'a command that fails is an error with its code and its last words: %s',
  async (script, reason) => {
    await expect(commands.ask(...sh, script)).rejects.toThrow(reason);
    await expect(commands.start(...sh, script)).rejects.toThrow(reason);
  },
);

test('a command that does not exist is an error', async () => {
  await expect(commands.ask('/nonexistent/systemctl')).rejects.toThrow('ENOENT');
});

test('a command that is asked and takes too long is ended', async () => {
  await expect(impatient.ask(...sh, 'read -r _ <&1')).rejects.toThrow('did not end within 10 s');
});

test('a command that starts something and takes long is left at work', async () => {
  const go = join(directory, 'go');
  const done = join(directory, 'done');
  const script = `until [ -e ${go} ]; do sleep 0.05; done; echo done > ${done}`;
  await impatient.start(...sh, script);
  await commands.ask(...sh, `echo > ${go}`);
  await vi.waitFor(async () => expect(await readFile(done, 'utf8')).toBe('done\n'), {
    timeout: 60_000,
  });
});
