/** Tests that services are found among real processes, by their arguments and environment. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type FoundService, findServices, readServiceArguments } from './find-services.ts';
import type { ProcessId } from './host.ts';
import { argumentsOf, findProcess, isOlder } from './processes.ts';

let directory: string;
const children: ChildProcess[] = [];
beforeEach(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), 'refit-services-')));
});
afterEach(async () => {
  for (const child of children.splice(0)) {
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  await rm(directory, { recursive: true });
});

/** Starts the program; resolves when it is certainly running. */
async function start(args: readonly string[], env: Record<string, string> = {}): Promise<number> {
  const path = join(directory, 'edge');
  await writeFile(path, '#!/bin/sh\necho up\nread -r _\n');
  await chmod(path, 0o755);
  const child = spawn(path, args, {
    stdio: ['pipe', 'pipe', 'inherit'],
    cwd: directory,
    env: { ...process.env, ...env },
  });
  children.push(child);
  await once(child.stdout, 'data');
  return child.pid ?? 0;
}

const found = (pid: number): FoundService | undefined =>
  findServices().find((service) => service.pid === pid);

test('after a restart only processes count that are not older than the one that ended', async () => {
  const first = await start(['controller']);
  const old = findProcess(first) as ProcessId;
  const pids = [first];
  // Start times have a resolution of 10 ms.
  while (!isOlder(old, findProcess(pids.at(-1) ?? 0) ?? old))
    pids.push(await start(['controller']));
  const last = pids.at(-1);
  const younger = findServices(findProcess(last ?? 0)).map(({ pid }) => pid);
  expect([younger.includes(last ?? 0), younger.includes(first)]).toEqual([true, false]);
  expect(findServices(old).map(({ pid }) => pid)).toEqual(expect.arrayContaining([first, last]));
});

test('relative paths are those of the process', async () => {
  const pid = await start(['worker', '--status-socket', 'run/s.sock', '--data-dir=data']);
  expect(found(pid)).toEqual({
    pid,
    statusSocket: join(directory, 'run/s.sock'),
    dataDirectory: join(directory, 'data'),
  });
});

test('names are found in the arguments and in the environment', async () => {
  const args = ['worker', '--status-socket', '/s', '--kubelet-extra-args=--hostname-override=w-7'];
  const pid = await start(args, { AUTOPILOT_HOSTNAME: 'Edge' });
  expect(found(pid)).toMatchObject({ hostnameOverride: 'w-7', hostname: 'Edge' });
});

test.each(['controller', 'server'])(
  'what `k0s %s` is not told is as in the original, which depends on who runs it',
  async (name) => {
    const pid = await start([name, '--data-dir', '/data']);
    const statusSocket =
      process.getuid?.() === 0 ? '/run/k0s/status.sock' : '/data/run/status.sock';
    expect(found(pid)).toEqual({ pid, statusSocket, dataDirectory: '/data' });
    expect(readServiceArguments(argumentsOf(pid))).toMatchObject({ isController: true });
  },
);

test('another command is none', async () => {
  expect(found(await start(['status']))).toBeUndefined();
});
