/** Tests several updaters behind one extension: the example as processes over HTTPS, and Refit, on a real API server. */
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { callHook } from '../../sandbox/cluster/hook-caller.ts';
import { askCanUpdate, driveUpdate, writeDesired } from '../../sandbox/cluster/machine-manager.ts';
import { CLUSTER, referencesOf } from '../../sandbox/cluster/machines.ts';
import type { UpdateMachineResponse } from '../../src/api/capi/hooks.ts';
import { machineDeployments, machines, SET_LABELS } from '../../src/api/capi/machine.ts';
import { type Updater, type UpdaterSet, updaterSets } from '../../src/api/refit/updater-set.ts';
import { STEPS_ANNOTATION } from '../../src/dialects/capi/hooks/updaters/step-record.ts';
import { apiVersionOf } from '../../src/kube/resources.ts';
import { systemClock } from '../../src/util/clock.ts';
import { messageOf } from '../../src/util/errors.ts';
import { ANY_CA, buildUpdaterSet } from '../support/builders/updater-sets.ts';
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
import { apply, kubeconfigFor } from './control-plane.ts';
import { runRefit } from './refit-process.ts';

const NAME = 'capi-updaters';
const PATIENCE = { timeout: 150_000, interval: 200 };
const FILES = [{ path: '/etc/demo', content: 'two' }];
const NTP = { enabled: true, servers: ['192.0.2.1'] };
const REFIT: Updater = { name: 'refit', refit: {} };
const wanted = { machine: machineOf('worker1'), version: TO, files: FILES, ntp: NTP };

let scene: MachineCluster;
let updaters: Readonly<Record<'files' | 'ntp', ExampleUpdater>>;

async function prepareFieldUpdater(field: string): Promise<ExampleUpdater> {
  const { directory } = scene;
  const args = [field, join(directory, 'state')];
  return await prepareUpdater(scene, { name: field, example: 'cluster-api-updater.ts', args });
}

beforeAll(async () => {
  await apply(await readFile('deploy/crds/upgrade.refit.dev_updatersets.yaml', 'utf8'));
  scene = await openMachineCluster({ workers: 2 });
  await mkdir(join(scene.directory, 'state'));
  await writeClientCertificate(scene);
  updaters = { files: await prepareFieldUpdater('files'), ntp: await prepareFieldUpdater('ntp') };
  await scene.cluster.client.create(updaterSets, buildUpdaterSet(NAME, [REFIT]));
});

afterAll(async () => {
  await Promise.all(Object.values(updaters).map(async (each) => await each.process.stop()));
  await scene.cluster.client.delete(updaterSets, NAME);
  await scene[Symbol.asyncDispose]();
});

beforeEach(async () => await scene.whenCallable('h2'));

async function setUpdaters(
  list: readonly Updater[],
  uncovered: UpdaterSet['spec']['uncovered'] = 'Replace',
) {
  const spec = { updaters: list, uncovered };
  await scene.cluster.client.patch(updaterSets, NAME, { spec }, { type: 'merge' });
}

test('Refit accepts a change that the updaters cover together, and names or refuses an uncovered part', async () => {
  const { files, ntp } = updaters;
  await setUpdaters([files.updater, ntp.updater, REFIT]);
  expect(await askCanUpdate(scene.manager('h2'), wanted)).toEqual([]);
  await setUpdaters([files.updater, REFIT]);
  expect(await askCanUpdate(scene.manager('h2'), wanted)).toContain('bootstrap.spec.ntp.servers');
  await setUpdaters([files.updater, REFIT], 'Refuse');
  await expect(askCanUpdate(scene.manager('h2'), wanted)).rejects.toThrow(
    /^UpdaterSet capi-updaters: refused, because it covers .*; not covered: bootstrap.spec.ntp.enabled, bootstrap.spec.ntp.servers$/,
  );
  const covered = async () =>
    (await scene.cluster.client.get(updaterSets, NAME)).status?.conditions?.find(
      ({ type }) => type === 'Covered',
    );
  expect(await covered()).toMatchObject({
    status: 'False',
    message: expect.stringContaining(
      `Machine default/${wanted.machine}: refused, because it covers`,
    ) as string,
  });
  await setUpdaters([files.updater, ntp.updater, REFIT], 'Refuse');
  expect(await askCanUpdate(scene.manager('h2'), wanted)).toEqual([]);
  expect(await covered()).toMatchObject({ status: 'True', reason: 'Covered' });
});

test('with Ask, the command in the message lets Cluster API replace the Machine', async () => {
  const { files } = updaters;
  await setUpdaters([files.updater, REFIT], 'Ask');
  const asked = await askCanUpdate(scene.manager('h2'), wanted).then(String, messageOf);
  const [, command = ''] = /to approve the replacement, run: refit (.*)$/.exec(asked) ?? [];
  expect(command).toBe(`approve machine/${wanted.machine} --namespace default`);
  const operator = ['--kubeconfig', await kubeconfigFor('operator')];
  const other = await runRefit('approve', 'machine/other', ...operator);
  expect(other).toMatchObject({ code: 1 });
  expect(other.stderr.join()).toContain(
    `Machine default/other does not wait for approval; these objects wait: Machine default/`,
  );
  const { client } = scene.cluster;
  const write = async (status: Partial<UpdaterSet['status']>) =>
    await client.patch(updaterSets, NAME, { status }, { type: 'merge', subresource: 'status' });
  expect(await runRefit(...command.split(' '), ...operator)).toMatchObject({ code: 0, stderr: [] });
  expect((await client.get(updaterSets, NAME)).status?.approved).toEqual([
    `Machine default/${wanted.machine}`,
  ]);
  // The list has room for 20 objects. Here, other objects take all the room.
  const others = Array.from({ length: 20 }, (_, index) => `Machine default/m${index}`);
  const told = { message: 'refused', asked: new Date(systemClock.now()).toISOString() };
  await write({ approved: [], uncovered: others.map((object) => ({ ...told, object })) });
  // The command needs the kind of the object.
  expect(await runRefit('approve', wanted.machine, ...operator)).toMatchObject({ code: 2 });
  expect(await runRefit(...command.split(' '), ...operator)).toMatchObject({ code: 0, stderr: [] });
  expect(await askCanUpdate(scene.manager('h2'), wanted)).toContain('bootstrap.spec.ntp.servers');
});

test('an updater with the certificate of another CA gets nothing, and the next one may cover all', async () => {
  const { files, ntp } = updaters;
  const foreign: Updater = { ...files.updater, name: 'foreign', caBundle: ANY_CA };
  await setUpdaters([foreign, files.updater, ntp.updater, REFIT]);
  expect(await askCanUpdate(scene.manager('h2'), wanted)).toEqual([]);
  await setUpdaters([{ ...foreign, onUnavailable: 'Refuse' }, files.updater, ntp.updater, REFIT]);
  await expect(askCanUpdate(scene.manager('h2'), wanted)).rejects.toThrow(
    'waiting for updater foreign',
  );
});

test('each updater does its part once, in order, although the extension and an updater are killed', async () => {
  const { files, ntp } = updaters;
  await setUpdaters([files.updater, ntp.updater, REFIT]);
  const words: string[] = [];
  const work: Promise<unknown>[] = [];
  let kills = 0;
  const heard = (answer: UpdateMachineResponse | Error): void => {
    if (answer instanceof Error) return;
    words.push(answer.message ?? 'done');
    if (kills >= 3) return;
    kills++;
    process.kill(scene.running.pid, 'SIGKILL');
    work.push(
      scene.extension.start(`extension-${kills}`).then((next) => {
        scene.running = next;
      }),
    );
    if (kills === 2) work.push(restartUpdater(ntp));
  };
  const manager = scene.manager('h2', heard);
  expect(await askCanUpdate(manager, wanted)).toEqual([]);
  await writeDesired(manager, wanted);
  await driveUpdate(manager, wanted);
  await Promise.all(work);
  const done = words.filter((message) => message.includes(' is done, '));
  // An answer that arrives too late is not repeated, because the next answer already reports the following step. So a
  // message may be missing, but the order is fixed.
  const inOrder = ['updater files is done, ntp is next', 'updater ntp is done, refit is next'];
  expect(done).toEqual(inOrder.filter((message) => done.includes(message)));
  expect(words.at(-1)).toBe('done');
  const state = async (field: string) =>
    JSON.parse(
      await readFile(
        join(scene.directory, 'state', `default-${wanted.machine}-${field}.json`),
        'utf8',
      ),
    ) as unknown;
  expect(await state('files')).toEqual(FILES);
  expect(await state('ntp')).toEqual(NTP);
  expect(await scene.cluster.hosts[0]?.version()).toBe(TO);
  const { metadata } = await scene.cluster.client.get(machines, wanted.machine, {
    namespace: 'default',
  });
  expect(metadata.annotations?.[STEPS_ANNOTATION]).toBeUndefined();
});

async function restartUpdater(of: ExampleUpdater): Promise<void> {
  await of.process.stop();
  of.process = await of.start();
}

test('an updater that is away holds its Machine, with the reason; the Machine goes on when it is back', async () => {
  const { files, ntp } = updaters;
  await setUpdaters([files.updater, ntp.updater, REFIT]);
  await files.process.stop();
  const second = { ...wanted, machine: machineOf('worker2') };
  const words: string[] = [];
  const manager = scene.manager('h2', (answer) => {
    if (!(answer instanceof Error)) words.push(answer.message ?? 'done');
  });
  await writeDesired(manager, second);
  const driven = driveUpdate(manager, second);
  await vi.waitFor(
    () =>
      expect(words.at(-1)).toMatch(/^waiting for updater files: no answer from 127.0.0.1:\d+: /),
    PATIENCE,
  );
  expect(await scene.cluster.hosts[1]?.version()).not.toBe(TO);
  files.process = await files.start();
  await driven;
  expect(await scene.cluster.hosts[1]?.version()).toBe(TO);
});

test('a set that accepted a MachineSet and is deleted: its Machines are not done without it', async () => {
  const { client } = scene.cluster;
  const options = { namespace: 'default' };
  const labels = { [SET_LABELS.deployment]: 'workers', [SET_LABELS.hash]: '1-abcde' };
  await client.create(machineDeployments, {
    apiVersion: apiVersionOf(machineDeployments),
    kind: machineDeployments.kind,
    metadata: { name: 'workers', ...options },
  });
  await client.patch(
    machines,
    machineOf('worker2'),
    { metadata: { labels } },
    { type: 'merge', ...options },
  );
  const template = {
    apiVersion: 'infrastructure.cluster.x-k8s.io/v1beta2',
    kind: 'DevMachineTemplate',
    metadata: { name: 'workers', ...options },
    spec: {},
  };
  const triple = (version: string) => ({
    machineSet: {
      apiVersion: apiVersionOf(machines),
      kind: 'MachineSet',
      metadata: { name: 'workers-abcde', ...options, labels },
      spec: {
        clusterName: CLUSTER,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: { ...referencesOf('workers'), clusterName: CLUSTER, version },
        },
      },
    },
    infrastructureMachineTemplate: template,
  });
  const { caller } = scene.manager('h2');
  const request = { current: triple(FROM), desired: triple(TO) };
  expect(await callHook(caller, 'CanUpdateMachineSet', request)).toMatchObject({
    status: 'Success',
    machineSetPatch: {},
  });
  const { metadata, spec } = await client.get(updaterSets, NAME);
  await client.delete(updaterSets, NAME);
  const second = { machine: machineOf('worker2'), version: TO };
  await expect(driveUpdate(scene.manager('h2'), second)).rejects.toThrow(
    'updater files is to update this Machine, but UpdaterSet capi-updaters no longer has it',
  );
  await client.create(updaterSets, buildUpdaterSet(metadata.name, spec.updaters));
  await driveUpdate(scene.manager('h2'), second);
});
