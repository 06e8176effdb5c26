/**
 * Tests the example updaters for certificates, operating systems and memory as processes behind the extension, on a real API server.
 * kubectl and the scripts are real. ssh, kubeadm, crictl, bootc and virsh are doubles that keep the state of one machine in files.
 */
import { chmod, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import {
  askCanUpdate,
  driveUpdate,
  type Wanted,
  writeDesired,
} from '../../sandbox/cluster/machine-manager.ts';
import type { UpdateMachineResponse } from '../../src/api/capi/hooks.ts';
import { machines } from '../../src/api/capi/machine.ts';
import { updaterSets } from '../../src/api/refit/updater-set.ts';
import { nodes } from '../../src/kube/resources.ts';
import { buildUpdaterSet } from '../support/builders/updater-sets.ts';
import {
  type ExampleUpdater,
  prepareUpdater,
  writeClientCertificate,
} from '../support/capi/example-updater.ts';
import {
  FROM,
  type MachineCluster,
  machineOf,
  openMachineCluster,
  TO,
} from '../support/capi/machine-cluster.ts';
import { apply, controlPlane, kubeconfigFor } from './control-plane.ts';

const NAME = 'capi-example-updaters';
const SCRIPTS = new URL('../../examples/cluster-api/', import.meta.url).pathname;
const DAYS = 180;
const IMAGE = 'registry.example.com/os:2';
const MIB = 4096;
const ADDRESS = '192.0.2.7';

/** For each updater, in the order of the set: its name, the kind and the field that it covers, and its command. */
const UPDATERS = [
  [
    'certificates',
    'bootstrapConfig',
    'clusterConfiguration.certificateValidityPeriodDays',
    'renew-certificates.sh',
  ],
  ['memory', 'infrastructureMachine', 'memoryMiB', 'resize-memory.sh'],
  ['os', 'infrastructureMachine', 'image', 'change-os.sh'],
] as const;

/** Each double finds the folder of its machine in HOST. */
const DOUBLES: Readonly<Record<string, string>> = {
  ssh: `while [ "\${1#root@}" = "$1" ]; do [ "$1" != -o ] || shift; shift; done
[ "$1" = root@${ADDRESS} ] || exit 255
shift
if [ -e "$HOST/restarting" ]; then rm "$HOST/restarting"; echo 'connection refused' >&2; exit 255; fi
if [ "$1" = sh ]; then shift; sed "s#/etc/kubernetes#$HOST#g" | sh "$@"; else "$@"; fi`,
  kubeadm: `[ ! -e "$HOST/kubeadm-fails" ] || { echo 'missing ca.key' >&2; exit 1; }
echo "kubeadm $*" >>"$HOST/calls"`,
  crictl: 'case $1 in ps) echo one; echo two ;; *) echo "crictl $*" >>"$HOST/calls" ;; esac',
  bootc: `case $1 in
status) echo "{\\"status\\":{\\"booted\\":{\\"image\\":{\\"image\\":{\\"image\\":\\"$(cat "$HOST/booted")\\"}}}}}" ;;
switch) echo "bootc $*" >>"$HOST/calls"; echo "$2" >"$HOST/staged" ;;
esac`,
  systemctl: `echo "systemctl $*" >>"$HOST/calls"
mv "$HOST/staged" "$HOST/booted"; : >"$HOST/restarting"; exit 255`,
  virsh: `[ "$2" = worker1 ] || exit 1
case $1 in
dominfo) echo "Max memory:     $(cat "$HOST/memory") KiB" ;;
domstate) cat "$HOST/state" ;;
shutdown) echo "virsh $*" >>"$HOST/calls"; echo 'shut off' >"$HOST/state" ;;
setmaxmem) echo "virsh $*" >>"$HOST/calls"; echo "\${3%KiB}" >"$HOST/memory" ;;
start) echo "virsh $*" >>"$HOST/calls"; echo running >"$HOST/state" ;;
esac`,
};

const wanted: Wanted = {
  machine: machineOf('worker1'),
  version: TO,
  clusterConfiguration: { certificateValidityPeriodDays: DAYS },
  infrastructure: { memoryMiB: MIB, image: IMAGE },
};

let scene: MachineCluster;
let host: string;
let updaters: readonly ExampleUpdater[];

beforeAll(async () => {
  await apply(await readFile('deploy/crds/upgrade.refit.dev_updatersets.yaml', 'utf8'));
  scene = await openMachineCluster({ workers: 1 });
  await writeClientCertificate(scene);
  host = join(scene.directory, 'machine');
  const programs = join(scene.directory, 'programs');
  await mkdir(programs);
  await mkdir(host);
  for (const [name, script] of Object.entries(DOUBLES)) {
    await writeFile(join(programs, name), `#!/bin/sh\n${script}\n`);
    await chmod(join(programs, name), 0o755);
  }
  await symlink(controlPlane().kubectl, join(programs, 'kubectl'));
  const environment = {
    HOST: host,
    KUBECONFIG: await kubeconfigFor('admin'),
    PATH: `${programs}:${process.env['PATH']}`,
  };
  updaters = await Promise.all(
    UPDATERS.map(async ([name, object, field, script]) => {
      const args = [object, field, join(SCRIPTS, script)];
      const example = 'cluster-api/command-updater.ts';
      return await prepareUpdater(scene, { name, example, args, environment });
    }),
  );
  const { client } = scene.cluster;
  const list = [...updaters.map(({ updater }) => updater), { name: 'refit', refit: {} }];
  await client.create(updaterSets, buildUpdaterSet(NAME, list, { uncovered: 'Refuse' }));
  const status = { addresses: [{ type: 'InternalIP', address: ADDRESS }] };
  const options = { type: 'merge', namespace: 'default', subresource: 'status' } as const;
  await client.patch(machines, wanted.machine, { status }, options);
});

afterAll(async () => {
  await Promise.all(updaters.map(async (each) => await each.process.stop()));
  await scene.cluster.client.delete(updaterSets, NAME);
  await scene[Symbol.asyncDispose]();
});

beforeEach(async () => {
  const before = { booted: 'registry.example.com/os:1', memory: '2097152', state: 'running' };
  for (const [name, text] of Object.entries(before)) await writeFile(join(host, name), `${text}\n`);
  await writeFile(join(host, 'calls'), '');
  for (const name of ['kubeadm-fails', 'renewed-for-days', 'restarting'])
    await rm(join(host, name), { force: true });
  await scene.whenCallable('h2');
});

async function callsOnHost(): Promise<string[]> {
  return (await readFile(join(host, 'calls'), 'utf8')).trim().split('\n');
}

test('a command that fails: the update fails with its last words, and goes on when the cause is gone', async () => {
  const certificates: Wanted = {
    machine: wanted.machine,
    version: FROM,
    clusterConfiguration: { certificateValidityPeriodDays: 90 },
  };
  const manager = scene.manager('h2');
  await writeFile(join(host, 'kubeadm-fails'), '');
  expect(await askCanUpdate(manager, certificates)).toEqual([]);
  await writeDesired(manager, certificates);
  await expect(driveUpdate(manager, certificates)).rejects.toThrow(
    /renew-certificates.sh failed: missing ca.key/,
  );
  await rm(join(host, 'kubeadm-fails'));
  await driveUpdate(manager, certificates);
  expect(await callsOnHost()).toEqual([
    'kubeadm certs renew all',
    'crictl stop one',
    'crictl stop two',
  ]);
});

test('certificates, memory, OS and version change in place, in order, although an updater is killed', async () => {
  const os = updaters[2];
  const words: string[] = [];
  let restarted: Promise<void> | undefined;
  const heard = (answer: UpdateMachineResponse | Error): void => {
    if (answer instanceof Error) return;
    words.push(answer.message ?? 'done');
    if (os === undefined || !words.at(-1)?.includes('spec.image')) return;
    restarted ??= restart(os);
  };
  const manager = scene.manager('h2', heard);
  expect(await askCanUpdate(manager, wanted)).toEqual([]);
  await writeDesired(manager, wanted);
  await driveUpdate(manager, wanted);
  await restarted;
  expect(restarted, words.join('\n')).toBeDefined();
  const calls = await callsOnHost();
  // After the kill, a second process may run the same command while the first process is still running it.
  expect(calls.filter((call, index) => call !== calls[index - 1])).toEqual([
    'kubeadm certs renew all',
    'crictl stop one',
    'crictl stop two',
    'virsh shutdown worker1',
    `virsh setmaxmem worker1 ${MIB * 1024}KiB --config`,
    'virsh start worker1',
    `bootc switch ${IMAGE}`,
    'systemctl reboot',
  ]);
  expect(await scene.cluster.hosts[0]?.version()).toBe(TO);
  const node = await scene.cluster.client.get(nodes, 'worker1');
  expect(node.spec?.unschedulable ?? false).toBe(false);
});

async function restart(of: ExampleUpdater): Promise<void> {
  process.kill(of.process.pid, 'SIGKILL');
  of.process = await of.start();
}
