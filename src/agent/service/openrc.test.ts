/**
 * Tests that the supervisor of a service under OpenRC identifies the service. The supervisor is simulated here;
 * test/agent uses the real one.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { UpdateJournal } from '../journal.ts';
import { afterReboot } from '../transitions.ts';
import type { Commands } from './commands.ts';
import type { ProcessId } from './host.ts';
import { openRc } from './openrc.ts';
import { bootId, findProcess } from './processes.ts';

let directory: string;
let supervisor: ChildProcess;
let service: ProcessId;
const controls: string[] = [];
const commands: Commands = {
  ask: async () => await Promise.reject(new Error('nothing is to be asked')),
  start: async (...words) => await Promise.resolve(void controls.push(words.join(' '))),
};

/** Starts a child, prints its PID, and ends the child when it receives input. */
const PROGRAM = `
const child = require('node:child_process').spawn('/bin/sh', ['-c', 'read -r _'], { stdio: ['pipe', 'ignore', 'ignore'] });
console.log(child.pid);
child.once('exit', () => console.log('gone'));
process.stdin.on('data', () => child.kill('SIGKILL')).on('end', () => process.exit());
`;

async function supervise(
  program: string,
  env: Record<string, string>,
  ...more: string[]
): Promise<void> {
  await writeFile(join(directory, 'k0sworker'), PROGRAM);
  await symlink(process.execPath, join(directory, program));
  supervisor = spawn(join(directory, program), ['k0sworker', '--start', ...more], {
    cwd: directory,
    env: { ...process.env, ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const [line] = (await once(supervisor.stdout as NodeJS.EventEmitter, 'data')) as [Buffer];
  service = findProcess(Number(line.toString())) as ProcessId;
}

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-openrc-'));
  controls.length = 0;
});
afterEach(async () => {
  supervisor.stdin?.end();
  if (supervisor.exitCode === null && supervisor.signalCode === null)
    await once(supervisor, 'exit');
  await rm(directory, { recursive: true });
});

test.each<[string, Record<string, string>, string]>([
  ['its environment', { RC_SVCNAME: 'edge' }, 'edge'],
  ['its first argument', {}, 'k0sworker'],
])('the service is named by its supervisor: %s', async (_name, env, name) => {
  await supervise('supervise-daemon', env);
  const found = await openRc(commands, directory).find(service, '/k0s');
  expect(found).toMatchObject({ title: `OpenRC service ${name}`, isRestarting: false });
  await found?.restart();
  expect(controls).toEqual([`rc-service --nodeps ${name} restart`]);
});

test('the account of a service says how often OpenRC started it again, and what it logged last', async () => {
  const log = join(directory, 'k0s.err');
  await supervise('supervise-daemon', {}, '--stdout', join(directory, 'none'), '--stderr', log);
  const found = await openRc(commands, directory, directory).find(service, '/k0s');
  expect(await found?.account(0)).toEqual({ restarts: 0, log: undefined });
  await writeFile(log, `${'x'.repeat(9000)}\none\ntwo\nthree\n`);
  await rm(join(directory, 'k0sworker'));
  await mkdir(join(directory, 'k0sworker'));
  await writeFile(join(directory, 'k0sworker', 'start_count'), '6');
  expect(await found?.account(0)).toEqual({ restarts: 6, log: ['one', 'two', 'three'] });
});

test.each([
  ['that others may write', async (path: string) => await chmod(path, 0o666)],
  [
    'that is a device',
    async (path: string) => await rm(path).then(async () => await symlink('/dev/zero', path)),
  ],
])('a log %s is not read', async (_name, change) => {
  const log = join(directory, 'k0s.err');
  await writeFile(log, 'secret\n');
  await change(log);
  await supervise('supervise-daemon', {}, '--stderr', log);
  const found = await openRc(commands, directory, directory).find(service, '/k0s');
  expect(await found?.account(0)).toEqual({ restarts: 0, log: undefined });
});

test('a process under another supervisor is none of OpenRC', async () => {
  await supervise('runsv', { RC_SVCNAME: 'edge' });
  expect(await openRc(commands, directory).find(service, '/k0s')).toBeUndefined();
});

test('a supervisor that is about to start the next process is not disturbed', async () => {
  await supervise('supervise-daemon', {});
  supervisor.stdin?.write('end');
  await once(supervisor.stdout as NodeJS.EventEmitter, 'data');
  expect(await openRc(commands, directory).find(service, '/k0s')).toMatchObject({
    isRestarting: true,
  });
});

test('a service whose supervisor has given up is found by its script, which names a link to the file', async () => {
  await supervise('supervise-daemon', {});
  supervisor.stdin?.end();
  await once(supervisor, 'exit');
  const binary = join(directory, 'k0s-1');
  const link = join(directory, 'k0s');
  await writeFile(binary, '');
  await symlink(binary, link);
  await writeFile(
    join(directory, 'edge'),
    `#!/sbin/openrc-run\nsupervisor=supervise-daemon\ncommand="${link}"\n`,
  );
  expect((await openRc(commands, directory).find(service, binary))?.title).toBe(
    'OpenRC service edge',
  );
});

test('a service from before a reboot is found by its script, though another process has the PID of its supervisor now', async () => {
  const binary = '/usr/local/bin/k0s';
  await writeFile(
    join(directory, 'edge'),
    `#!/sbin/openrc-run\nsupervisor=supervise-daemon\ncommand=${binary}\n`,
  );
  const original = { pid: 2 ** 22 + 1, started: 'before/1', parent: process.ppid };
  const command = { id: 0, kind: 'k0supdate', url: 'http://d/k0s', version: 'v2' } as const;
  const work = { signal: { planId: 'p', created: 'c', command }, binary, from: 'v1', original };
  const journal = afterReboot({ phase: 'swappedBack', work, spent: {} }, bootId()) as UpdateJournal;
  const found = await openRc(commands, directory).find(journal.work.original, binary);
  expect(found).toMatchObject({ title: 'OpenRC service edge', isRestarting: false });
});

test.each([
  ['command=/usr/local/bin/k0s', 'supervise-daemon', 'edge'],
  ['command="/usr/local/bin/k0s"', 'supervise-daemon', 'edge'],
  ['command=/usr/local/bin/k0s-old', 'supervise-daemon', undefined],
  ['command=/usr/local/bin/k0s', 'start-stop-daemon', undefined],
])(
  'a service whose supervisor has given up is found by its script: %s under %s',
  async (line, by, name) => {
    await supervise('supervise-daemon', {});
    supervisor.stdin?.end();
    await once(supervisor, 'exit');
    await writeFile(join(directory, 'edge'), `#!/sbin/openrc-run\nsupervisor=${by}\n${line}\n`);
    const found = await openRc(commands, directory).find(service, '/usr/local/bin/k0s');
    expect(found?.title).toBe(name && `OpenRC service ${name}`);
    expect(found?.isRestarting ?? false).toBe(false);
  },
);
