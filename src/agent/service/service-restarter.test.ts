/**
 * Tests that a restart uses a service manager if possible, and sends SIGTERM only if no service manager can restart the
 * service.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type LogFields, silentLogger } from '../../util/log.ts';
import type { ProcessId } from './host.ts';
import { findProcess } from './processes.ts';
import type { ManagedService, ServiceManager } from './service-manager.ts';
import { serviceRestarter } from './service-restarter.ts';

let child: ChildProcess;
let id: ProcessId;
let ended: Promise<unknown>;
beforeEach(async () => {
  child = spawn('/bin/sh', ['-c', 'echo up; read -r _'], { stdio: ['pipe', 'pipe', 'inherit'] });
  ended = once(child, 'exit');
  await once(child.stdout as NodeJS.EventEmitter, 'data');
  id = findProcess(child.pid ?? 0) as ProcessId;
});
afterEach(async () => {
  child.kill('SIGKILL');
  await ended;
});

const said: [string, LogFields][] = [];
const tell = (message: string, fields: LogFields = {}): void => void said.push([message, fields]);
const log = { ...silentLogger, info: tell, warn: tell };
let restarts = 0;
beforeEach(() => {
  said.length = 0;
  restarts = 0;
});

const managerOf = (service: Partial<ManagedService> | undefined): ServiceManager => ({
  find: async () =>
    await Promise.resolve(
      service && {
        title: 'unit k0s',
        isRestarting: false,
        restart: async () => await Promise.resolve(void restarts++),
        account: async () => await Promise.resolve({ restarts: 6 }),
        ...service,
      },
    ),
});
const broken: ServiceManager = { find: async () => await Promise.reject(new Error('no bus')) };
const nobody = managerOf(undefined);

test('the first manager that knows the service restarts it', async () => {
  await serviceRestarter([broken, nobody, managerOf({})], log).restart(id, '/k0s');
  expect(restarts).toBe(1);
  expect(said).toEqual([['restart ordered', { of: 'unit k0s' }]]);
  expect(findProcess(id.pid)).toEqual(id);
});

test('a service that is taken care of is left alone', async () => {
  await serviceRestarter([managerOf({ isRestarting: true })], log).restart(id, '/k0s');
  expect([restarts, said]).toEqual([0, []]);
  expect(findProcess(id.pid)).toEqual(id);
});

test('the manager of the service tells how it ended, and without a manager nobody does', async () => {
  const broken = managerOf({ account: async () => await Promise.reject(new Error('no bus')) });
  const accountOf = async (...managers: ServiceManager[]) =>
    await serviceRestarter(managers, log).account(id, '/k0s', 0);
  expect(await accountOf(nobody, managerOf({}))).toEqual({ restarts: 6 });
  expect(await accountOf(nobody)).toBeUndefined();
  expect(await accountOf(broken)).toBeUndefined();
});

test('without a manager the process gets SIGTERM', async () => {
  await serviceRestarter([nobody, broken], log).restart(id, '/k0s');
  expect(await ended).toEqual([null, 'SIGTERM']);
});

test('a manager that fails is reported, and the process gets SIGTERM', async () => {
  const restart = async (): Promise<void> => await Promise.reject(new Error('access denied'));
  await serviceRestarter([managerOf({ restart })], log).restart(id, '/k0s');
  expect(await ended).toEqual([null, 'SIGTERM']);
  expect(said[0]).toEqual([
    'the service manager failed; sending SIGTERM instead',
    { of: 'unit k0s', reason: 'access denied' },
  ]);
});

test('a process that is gone is left to what started it, for as long as that lives', async () => {
  const gone = { ...id, started: 'another boot/1' };
  await serviceRestarter([nobody], log).restart(gone, '/k0s');
  expect(said).toEqual([
    [
      'the process has already ended: waiting for its supervisor to start it',
      { pid: gone.pid, of: gone.parent },
    ],
  ]);
  const orphanedPlan = { ...gone, parent: 2 ** 22 + 1 };
  await expect(serviceRestarter([nobody], log).restart(orphanedPlan, '/k0s')).rejects.toThrow(
    `PID ${id.pid} and its supervisor`,
  );
  expect(findProcess(id.pid)).toEqual(id);
});
