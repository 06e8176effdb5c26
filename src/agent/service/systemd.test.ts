/**
 * Tests what is asked of systemd, with real processes and a simulated `systemctl`. It prints answers in the form of
 * systemd, and ends or starts only the processes of the test.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../util/clock.ts';
import { createCommands } from './commands.ts';
import type { ProcessId } from './host.ts';
import { findProcess } from './processes.ts';
import type { ServiceManager } from './service-manager.ts';
import { systemd as managerOf, parseUnits, unitNameIn } from './systemd.ts';

let directory: string;
let child: ChildProcess;
let id: ProcessId;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-systemd-'));
  child = spawn('/bin/sh', ['-c', 'echo up; read -r _'], { stdio: ['pipe', 'pipe', 'inherit'] });
  await once(child.stdout as NodeJS.EventEmitter, 'data');
  id = findProcess(child.pid ?? 0) as ProcessId;
  const program = `#!/bin/sh\necho "$*" >> ${directory}/calls\n[ "$1" = show ] && exec cat ${directory}/units\nexit "$(cat ${directory}/code)"\n`;
  await writeFile(join(directory, 'systemctl'), program);
  await chmod(join(directory, 'systemctl'), 0o755);
  await writeFile(join(directory, 'code'), '0');
});
afterEach(async () => {
  child.kill('SIGKILL');
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  await rm(directory, { recursive: true });
});

const BINARY = '/usr/local/bin/k0s';
const IN_UNIT = '0::/system.slice/k0sworker.service\n';

interface UnitFields {
  id?: string;
  pid?: number;
  state?: string;
  path?: string;
  args?: string;
  changedAt?: number;
}
const unit = ({
  id: name = 'k0sworker.service',
  pid = 0,
  state = 'active',
  path = BINARY,
  args = 'worker',
  changedAt = 0,
}: UnitFields): string =>
  `ExecStart={ path=${path} ; argv[]=${path} ${args} ; ignore_errors=no ; pid=${pid} ; status=0/0 }\nId=${name}\nMainPID=${pid}\nActiveState=${state}\nStateChangeTimestampMonotonic=${changedAt}\n`;

function systemd(cgroup = IN_UNIT): ServiceManager {
  const env = { ...process.env, PATH: `${directory}:${process.env['PATH']}` };
  return managerOf(createCommands(env, systemClock), () => cgroup);
}
const units = async (...texts: string[]): Promise<void> =>
  await writeFile(join(directory, 'units'), texts.join('\n'));
const calls = async (): Promise<string[]> =>
  (await readFile(join(directory, 'calls'), 'utf8').catch(() => '')).split('\n').slice(0, -1);
const SHOW = 'show --property=Id,MainPID,ActiveState,ExecStart,StateChangeTimestampMonotonic';

test('the unit of the process is restarted without waiting', async () => {
  await units(unit({ pid: id.pid }));
  const service = await systemd().find(id, BINARY);
  expect(service).toMatchObject({ title: 'systemd unit k0sworker.service', isRestarting: false });
  await service?.restart();
  expect(await calls()).toEqual([
    `${SHOW} k0sworker.service`,
    'restart --no-block k0sworker.service',
  ]);
});

test('the unit of a process that a shell of the unit started is found', async () => {
  await units(unit({ pid: process.pid }));
  expect(await systemd().find(id, BINARY)).toMatchObject({ isRestarting: false });
});

test('the unit of a process is found if its script, which names no k0s, became the process', async () => {
  await units(unit({ pid: id.pid, path: '/usr/local/sbin/start-k0s', args: '' }));
  expect(await systemd().find(id, BINARY)).toMatchObject({
    title: 'systemd unit k0sworker.service',
  });
});

test('the unit of a process is found again when the process is gone, although another unit names the file', async () => {
  const script = { path: '/usr/local/sbin/start-k0s', args: '', changedAt: 1 };
  await units(unit({ ...script, pid: id.pid }));
  const manager = systemd();
  await manager.find(id, BINARY);
  await units(unit({ id: 'left.service' }), unit({ ...script, state: 'failed' }));
  const service = await manager.find({ ...id, started: 'another boot/1' }, BINARY);
  expect(service).toMatchObject({ title: 'systemd unit k0sworker.service', isRestarting: false });
  await service?.restart();
  expect((await calls()).slice(2)).toEqual([
    'reset-failed k0sworker.service',
    'restart --no-block k0sworker.service',
  ]);
});

test('a service beside k0s is not restarted for a process that it started', async () => {
  await units(unit({ pid: process.pid, path: '/usr/sbin/crond', args: '-n' }));
  expect(await systemd().find(id, BINARY)).toBeUndefined();
});

test.each([
  ['in no cgroup of a unit', '0::/user.slice/session-1.scope\n', []],
  ['without any cgroup', '', []],
  ['that a unit merely started', IN_UNIT, [`${SHOW} k0sworker.service`]],
])('a process %s is not of systemd', async (_name, cgroup, expected) => {
  await units(unit({ pid: 999_999_999 }));
  expect(await systemd(cgroup).find(id, BINARY)).toBeUndefined();
  expect(await calls()).toEqual(expected);
});

test('the unit of a process that is gone is found by its file', async () => {
  const gone = { ...id, started: 'another boot/1' };
  await units(
    unit({ id: 'old.service', path: `${BINARY}-old` }),
    unit({ state: 'failed' }),
    unit({ id: 'ssh.service', path: '/sshd', pid: 5 }),
  );
  const service = await systemd().find(gone, BINARY);
  expect(service).toMatchObject({ title: 'systemd unit k0sworker.service', isRestarting: false });
  await service?.restart();
  expect(await calls()).toEqual([
    `${SHOW} *.service`,
    'reset-failed k0sworker.service',
    'restart --no-block k0sworker.service',
  ]);
});

test.each([
  ['never started', { state: 'inactive', changedAt: 0 }],
  ['that failed long ago', { state: 'failed', changedAt: 900 }],
])(
  'of two units that start its file as k0s, one for another role %s is not the one',
  async (_name, other) => {
    await units(
      unit({ id: 'k0scontroller.service', args: 'controller', ...other }),
      unit({ changedAt: 1_000_000 }),
    );
    const service = await systemd().find({ ...id, started: 'another boot/1' }, BINARY);
    expect(service?.title).toBe('systemd unit k0sworker.service');
  },
);

test.each([
  ['a link to it', (link: string) => ({ path: link })],
  [
    'a shell',
    (link: string) => ({ path: '/bin/sh', args: `-c exec ${link} worker --token-file x` }),
  ],
  [
    "k0s's other word for a controller",
    (link: string) => ({ path: link, args: 'server --enable-worker' }),
  ],
])(
  'the unit of a process that is gone is found by its file, started through %s',
  async (_name, started) => {
    const binary = join(directory, 'k0s-1');
    const link = join(directory, 'k0s');
    await writeFile(binary, '');
    await symlink(binary, link);
    await units(unit({ state: 'failed', ...started(link) }));
    const service = await systemd().find({ ...id, started: 'another boot/1' }, binary);
    expect(service).toMatchObject({ title: 'systemd unit k0sworker.service', isRestarting: false });
  },
);

test.each([
  'kubectl proxy',
  'etcd backup --save-path /worker',
  'status ; ignore_errors=no ; } worker',
])('a unit that starts the file as "%s" is another service', async (args) => {
  await units(unit({ id: 'other.service', args }));
  expect(await systemd().find({ ...id, started: 'another boot/1' }, BINARY)).toBeUndefined();
});

test('a unit that runs another process already is left alone', async () => {
  await units(unit({ pid: process.ppid }));
  expect(await systemd().find({ ...id, started: 'another boot/1' }, BINARY)).toMatchObject({
    isRestarting: true,
  });
});

test.each([
  ['1', '1', 'exit code 1'],
  ['2', '9', 'signal 9'],
  ['0', '0', undefined],
])(
  'how often systemd started it again, how it ended (%s %s), and what it logged last',
  async (code, status, end) => {
    await units(unit({ pid: id.pid }));
    const service = await systemd().find(id, BINARY);
    await units(`NRestarts=6\nExecMainCode=${code}\nExecMainStatus=${status}\n`);
    await writeFile(
      join(directory, 'journalctl'),
      `#!/bin/sh\necho "$*" >> ${directory}/calls\nprintf 'one\\ntwo\\n'\n`,
    );
    await chmod(join(directory, 'journalctl'), 0o755);
    const account = await service?.account(1_700_000_000_900);
    expect(account).toEqual({ restarts: 6, end, log: ['one', 'two', ''] });
    expect((await calls()).slice(1).toSorted()).toEqual([
      '--lines=3 --output=cat --no-pager --quiet --since=@1700000000 _SYSTEMD_UNIT=k0sworker.service',
      'show --property=NRestarts,ExecMainCode,ExecMainStatus k0sworker.service',
    ]);
  },
);

test('a journal that cannot be read leaves the count', async () => {
  await units(unit({ pid: id.pid }));
  const service = await systemd().find(id, BINARY);
  await units('NRestarts=2\nExecMainCode=1\nExecMainStatus=3\n');
  await writeFile(join(directory, 'journalctl'), '#!/bin/sh\nexit 1\n');
  await chmod(join(directory, 'journalctl'), 0o755);
  expect(await service?.account(0)).toEqual({ restarts: 2, end: 'exit code 3', log: [''] });
});

test('a restart that systemd refuses is an error with the exit code', async () => {
  await units(unit({ pid: id.pid }));
  await writeFile(join(directory, 'code'), '4');
  const service = await systemd().find(id, BINARY);
  await expect(service?.restart()).rejects.toThrow(
    'systemctl restart --no-block k0sworker.service ended with code 4',
  );
});

test.each([
  ['version 2', '0::/system.slice/k0scontroller.service\n', 'k0scontroller.service'],
  [
    'version 1',
    '2:cpu:/x.service\n1:name=systemd:/system.slice/k0s.service\n0::/\n',
    'k0s.service',
  ],
  ['a group below the unit', '0::/system.slice/k0s.service/payload\n', 'k0s.service'],
  [
    "a user's manager",
    '0::/user.slice/user-1.slice/user@1.service/app.slice/k0s.service\n',
    'k0s.service',
  ],
  ['a template', '0::/system.slice/system-k0s.slice/k0s@a.service\n', 'k0s@a.service'],
  ['a container', '0::/system.slice/docker-5f.scope\n', undefined],
  ['no systemd', '1:cpu:/\n0::/\n', undefined],
])('the unit in a cgroup of %s', (_name, cgroup, expected) => {
  expect(unitNameIn(cgroup)).toBe(expected);
});

test('the answer of systemd is split into its units, and an empty answer has none', () => {
  const text = [unit({ pid: 7 }), unit({ id: 'ssh.service' })].join('\n');
  expect(parseUnits(text).map(({ id: name, mainPid }) => [name, mainPid])).toEqual([
    ['k0sworker.service', 7],
    ['ssh.service', 0],
  ]);
  expect(parseUnits('')).toEqual([]);
});
