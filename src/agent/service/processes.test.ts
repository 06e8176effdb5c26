/** Tests that processes and their files are found, with a real executable that is replaced while it runs. */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, copyFile, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { findService } from './find-services.ts';
import { ageOf, endProcess, executableOf, executes, findProcess } from './processes.ts';

let directory: string;
let binary: string;
const children: ChildProcess[] = [];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-processes-'));
  binary = join(directory, 'k0s');
});
afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  await rm(directory, { recursive: true });
});

/** Resolves when the program certainly runs. */
async function start(path: string, args: readonly string[]): Promise<number> {
  const child = spawn(path, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  children.push(child);
  await once(child.stdout, 'data');
  return child.pid ?? 0;
}

const child = () => ({ parent: process.pid, started: '' });

const startNode = async (command = 'worker'): Promise<number> =>
  await start(binary, ['-e', 'console.log("up"); setInterval(() => undefined, 60_000)', command]);

test('a real executable is found from its PID, and after another file took its place', async () => {
  await copyFile(process.execPath, binary);
  const pid = await startNode();
  expect(executableOf(pid)).toBe(binary);
  expect(executes(pid, binary)).toBe(true);
  await copyFile(process.execPath, `${binary}.new`);
  await rename(`${binary}.new`, binary);
  expect(executableOf(pid)).toBe(binary);
  expect(executes(pid, binary)).toBe(false);
  expect(findService(binary, child())).toEqual(findProcess(pid));
});

test('a script is found by its path', async () => {
  await writeFile(binary, '#!/bin/sh\necho up\nread -r _\n');
  await chmod(binary, 0o755);
  const pid = await start(binary, ['worker']);
  expect(executes(pid, binary)).toBe(true);
  expect(executes(pid, `${binary}x`)).toBe(false);
  expect(findService(binary, child())).toMatchObject({ pid, parent: process.pid });
});

test('a process of another parent is not the service', async () => {
  await copyFile(process.execPath, binary);
  await startNode();
  expect(findService(binary, { ...child(), parent: 1 })).toBeUndefined();
});

test.each(['controller', 'server'])(
  '`k0s %s` is the service, and `k0s api` that outlives it is not',
  async (name) => {
    await copyFile(process.execPath, binary);
    await startNode('api');
    expect(findService(binary, child())).toBeUndefined();
    const pid = await startNode(name);
    expect(findService(binary, child())).toMatchObject({ pid });
  },
);

test('a process is signalled once and only itself', async () => {
  await copyFile(process.execPath, binary);
  const pid = await startNode();
  const found = findProcess(pid);
  if (found === undefined) throw new Error('not found');
  endProcess({ ...found, started: 'another boot/1' }, 'SIGTERM');
  expect(findProcess(pid)).toEqual(found);
  const child = children.find((candidate) => candidate.pid === pid);
  const gone = once(child as ChildProcess, 'exit');
  endProcess(found, 'SIGTERM');
  expect(await gone).toEqual([null, 'SIGTERM']);
  expect(findProcess(pid)).toBeUndefined();
  endProcess(found, 'SIGKILL');
});

test('a process is as old as it says itself', async () => {
  await copyFile(process.execPath, binary);
  const pid = await startNode();
  const own = findProcess(process.pid);
  const child = findProcess(pid);
  if (own === undefined || child === undefined) throw new Error('not found');
  const youngerMs = (await ageOf(own)) - (await ageOf(child));
  expect(youngerMs).toBeGreaterThan(0);
  expect(await ageOf(child)).toBeGreaterThanOrEqual(0);
  // `process.uptime()` begins a little later than the process itself, and the start time of a process is only as exact
  // as a clock tick.
  expect(await ageOf(own)).toBeGreaterThanOrEqual(1000 * process.uptime() - 50);
});

test('two processes have different identities, one always the same', () => {
  const own = findProcess(process.pid);
  const parent = findProcess(process.ppid);
  expect(own).toEqual(findProcess(process.pid));
  expect(own?.parent).toBe(process.ppid);
  expect(parent?.started).not.toBe(own?.started);
});
