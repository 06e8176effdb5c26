/** Tests that only one agent at a time can use a state directory, and that the lock of a dead agent is free. */
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { findProcess } from '../service/processes.ts';
import { takeLock } from './lock.ts';

let directory: string;
let lock: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-lock-'));
  lock = join(directory, 'agent.lock');
});
afterEach(async () => await rm(directory, { recursive: true }));

/** The PIDs of two processes that live at least as long as the test. */
const us = process.pid;
const them = process.ppid;

async function holder(): Promise<unknown> {
  const [file = '', ...more] = await readdir(directory);
  expect(more).toEqual([]);
  return (JSON.parse(await readFile(join(directory, file), 'utf8')) as { pid: number }).pid;
}

test('a free lock is taken, one of a living process is not', async () => {
  await takeLock(lock, them);
  await expect(takeLock(lock, us)).rejects.toMatchObject({
    code: 'REFIT_AGENT',
    message: expect.stringContaining(`PID ${them}`),
  });
  expect(await holder()).toBe(them);
});

test.each([
  [
    'of a process that is gone',
    () => JSON.stringify({ pid: 2 ** 22 + 1, started: 'boot/1', parent: 1 }),
  ],
  [
    'of an earlier process with a PID that lives again',
    () => JSON.stringify({ ...findProcess(them), started: 'boot/1' }),
  ],
  ['that nobody finished writing', () => '{"pid":'],
])('a lock %s is taken over', async (_name, content) => {
  await writeFile(`${lock}.7`, content());
  await takeLock(lock, us);
  expect(await holder()).toBe(us);
});

test('of many that come at once to a dead lock, one wins', async () => {
  await writeFile(`${lock}.1`, JSON.stringify({ pid: 2 ** 22 + 1, started: 'boot/1', parent: 1 }));
  const results = await Promise.allSettled(
    [us, them].map(async (pid) => await takeLock(lock, pid)),
  );
  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
});
