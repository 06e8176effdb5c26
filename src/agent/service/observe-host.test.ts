/**
 * Tests which facts the agent finds out about a host. The service is a real executable, and a status socket reports its
 * PID.
 */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import type { Server } from 'node:http';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { writeWorkerProfile } from '../../../sandbox/hosts/host.ts';
import type { Journal, UpdatePhase } from '../journal.ts';
import { IDLE } from '../journal.ts';
import type { ServicePlace } from './find-services.ts';
import type { ProcessId } from './host.ts';
import { type HostPlace, observeHost } from './observe-host.ts';
import { findProcess } from './processes.ts';

const VERSION = 'v1.36.3+k0s.0';

let directory: string;
let binary: string;
let statusSocket: string;
let service: ChildProcess;
let server: Server;
let id: ProcessId;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-observe-'));
  binary = join(directory, 'k0s');
  statusSocket = join(directory, 'status.sock');
  await copyFile(process.execPath, binary);
  // Node.js runs the file `worker`, so the command line looks like the command line of a k0s worker.
  await writeFile(join(directory, 'worker'), 'console.log("up"); process.stdin.resume()');
  service = spawn(binary, ['worker'], { stdio: ['pipe', 'pipe', 'inherit'], cwd: directory });
  await once(service.stdout as NodeJS.EventEmitter, 'data');
  await writeWorkerProfile(directory, false);
  id = findProcess(service.pid ?? 0) as ProcessId;
  server = createServer((_request, response) =>
    response.end(JSON.stringify({ Version: VERSION, Pid: service.pid })),
  );
  await once(server.listen(statusSocket), 'listening');
});
afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await end();
  await rm(directory, { recursive: true });
});

/**
 * Returns the places of the service on a host. A new search finds the same places. `told` is the path of the binary if
 * the options set it.
 */
function hostPlace(told?: string): HostPlace {
  const current = { statusSocket, dataDirectory: directory };
  return { places: { current, search: async () => await Promise.resolve(current) }, binary: told };
}

async function end(): Promise<void> {
  if (service.exitCode !== null || service.signalCode !== null) return;
  service.kill('SIGKILL');
  await once(service, 'exit');
}

async function backoff(): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}

function journalAt(phase: UpdatePhase, original: ProcessId): Journal {
  const command = { id: 0, kind: 'k0supdate', url: 'http://d/k0s', version: 'v2' } as const;
  return {
    phase,
    work: { signal: { planId: 'p', created: 'c', command }, binary, from: VERSION, original },
    spent: {},
  };
}

const foreignTarget = (): ProcessId => ({
  pid: 2 ** 22 + 1,
  started: 'boot/1',
  parent: process.pid,
});

test('the agent finds the path of the k0s binary through the running service', async () => {
  const running = { version: VERSION, process: id, current: true };
  expect(await observeHost(hostPlace(), IDLE)).toEqual({
    running,
    service: id,
    binary,
    ownAgent: false,
  });
});

test('the agent sees that the k0s binary was replaced while the service still runs the old file', async () => {
  await copyFile(process.execPath, `${binary}.new`);
  await rename(`${binary}.new`, binary);
  const running = { version: VERSION, process: id, current: false };
  expect(await observeHost(hostPlace(), IDLE)).toEqual({
    running,
    service: id,
    binary,
    ownAgent: false,
  });
});

test('the path of the binary is that of the flag, then that of the journal', async () => {
  expect(await observeHost(hostPlace('/flag/k0s'), IDLE)).toMatchObject({ binary: '/flag/k0s' });
  const journal = journalAt('ready', id);
  await rename(binary, `${binary}.moved`);
  expect(await observeHost(hostPlace(), journal)).toMatchObject({
    binary,
    running: { current: false },
  });
});

test('the agent finds a service that was started with another status socket', async () => {
  const current = { statusSocket: `${statusSocket}.old`, dataDirectory: directory };
  const search = async (): Promise<ServicePlace> =>
    await Promise.resolve({ ...current, statusSocket });
  expect(await observeHost({ places: { current, search }, binary: undefined }, IDLE)).toMatchObject(
    { service: id },
  );
});

test('a service that does not answer is known from the journal', async () => {
  await backoff();
  const problem = expect.stringContaining(`no status from ${statusSocket}: `);
  expect(await observeHost(hostPlace(), IDLE)).toEqual({ problem });
  expect(await observeHost(hostPlace(), journalAt('restarted', id))).toEqual({
    problem,
    binary,
    service: id,
  });
});

test.each(['swapped', 'swappedBack'] as const)(
  'a service that the journal does not know is looked for if a restart depends on it: %s',
  async (phase) => {
    await backoff();
    expect(await observeHost(hostPlace(), journalAt(phase, foreignTarget()))).toMatchObject({
      service: id,
    });
  },
);

test('a service whose supervisor was replaced with it is found by its arguments', async () => {
  await backoff();
  await end();
  await writeFile(`${binary}-script`, '#!/bin/sh\necho up\nread -r _\n', { mode: 0o755 });
  service = spawn(`${binary}-script`, ['worker'], { stdio: ['pipe', 'pipe', 'inherit'] });
  await once(service.stdout as NodeJS.EventEmitter, 'data');
  binary = `${binary}-script`;
  const journal = journalAt('swapped', { ...foreignTarget(), parent: 2 ** 22 + 1 });
  expect(await observeHost(hostPlace(), journal)).toMatchObject({
    service: findProcess(service.pid ?? 0),
  });
  expect(
    await observeHost(hostPlace(), journalAt('restartedBack', foreignTarget())),
  ).not.toHaveProperty('service');
});

test('a service that the journal does not know is not looked for if no restart depends on it', async () => {
  await backoff();
  expect(
    await observeHost(hostPlace(), journalAt('restartedBack', foreignTarget())),
  ).not.toHaveProperty('service');
});

test('a PID that is not there is no service', async () => {
  await end();
  const facts = await observeHost(hostPlace(), journalAt('restarted', id));
  expect(facts).toEqual({ binary, problem: expect.stringContaining(`PID ${id.pid}`) });
});
