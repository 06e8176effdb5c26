/**
 * Tests that processes of containers never count as the service, and that processes of units do. A pod runs a program
 * as root that looks like k0s.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, rmdir, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { findServices } from '../../src/agent/service/find-services.ts';
import { testUnless } from '../support/left-out.ts';
import { attackOnDisk } from './rig.ts';

let directory: string;
let child: ChildProcess | undefined;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-container-'));
  for (const name of ['root', 'root/usr', 'private']) await mkdir(join(directory, name));
  for (const name of ['bin', 'lib', 'lib64'])
    await symlink(`usr/${name}`, join(directory, 'root', name));
  for (const name of ['worker', 'root/worker'])
    await writeFile(join(directory, name), 'echo up\nread -r _\n');
});

afterEach(async () => {
  if (child !== undefined && child.exitCode === null && child.signalCode === null) {
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  }
  await rm(directory, { recursive: true });
});

/**
 * Runs a script that ends with `exec /usr/bin/sh worker`. Resolves with true if the agent takes this process for a
 * service of the host.
 */
async function isBelieved(script: string): Promise<boolean> {
  child = spawn('/bin/sh', ['-ec', script], { cwd: directory, stdio: ['pipe', 'pipe', 'inherit'] });
  const up = await Promise.race([
    once(child.stdout as NodeJS.EventEmitter, 'data'),
    once(child, 'exit'),
  ]);
  expect(String(up[0])).toBe('up\n');
  return findServices().some(({ pid }) => pid === child?.pid);
}

test('on the host itself it is believed', async () => {
  expect(await isBelieved('exec /usr/bin/sh worker')).toBe(true);
});

attackOnDisk('a unit with mounts of its own, such as PrivateTmp, is believed', async () => {
  const inside = 'mount -t tmpfs private private; exec /usr/bin/sh worker';
  expect(await isBelieved(`exec unshare --mount /bin/sh -ec '${inside}'`)).toBe(true);
});

attackOnDisk('a process with a root directory of its own is not', async () => {
  const inside = 'mount --bind /usr root/usr; exec chroot root /usr/bin/sh worker';
  expect(await isBelieved(`exec unshare --mount /bin/sh -ec '${inside}'`)).toBe(false);
});

/** A hierarchy in which the test can create cgroups: of version 2 if possible, otherwise of version 1. */
const hierarchy = ['', 'pids', 'unified', 'systemd']
  .map((name) => join('/sys/fs/cgroup', name))
  .find((path) => existsSync(join(path, 'cgroup.procs')));
const attackInCgroup =
  hierarchy === undefined
    ? testUnless('this host has no hierarchy of cgroups below /sys/fs/cgroup')
    : attackOnDisk;

attackInCgroup.each([
  ['a pod', 'kubepods-refit-test/pod1'],
  ['a container', `docker-${'0123456789abcdef'.repeat(4)}.scope`],
])('%s is not, though its root directory is the host’s', async (_name, name) => {
  const cgroup = join(hierarchy ?? '', name);
  await mkdir(cgroup, { recursive: true });
  onTestFinished(async () => {
    await rmdir(cgroup);
    if (dirname(cgroup) !== hierarchy) await rmdir(dirname(cgroup));
  });
  expect(await isBelieved(`echo $$ > ${cgroup}/cgroup.procs; exec /usr/bin/sh worker`)).toBe(false);
});
