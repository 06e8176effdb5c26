/** Tests on a real API server what happens to a Machine whose agent has vanished, if stuck Machines are deleted. */
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { driveUpdate, writeDesired } from '../../sandbox/cluster/machine-manager.ts';
import { createDeployment, setOf } from '../../sandbox/cluster/machines.ts';
import { machines } from '../../src/api/capi/machine.ts';
import { ifFound } from '../../src/kube/status-error.ts';
import { messageOf } from '../../src/util/errors.ts';
import {
  type MachineCluster,
  machineOf,
  openMachineCluster,
  TO,
} from '../support/capi/machine-cluster.ts';
import { kubectlAs } from './control-plane.ts';

const PATIENCE = { timeout: 150_000, interval: 200 };
const NODE = 'worker1';
const RIGHT = 'refit-capi-delete';

let scene: MachineCluster;

const wanted = { machine: machineOf(NODE), version: TO };
const deadline = `${NODE} did not report within its deadline`;

beforeAll(async () => {
  scene = await openMachineCluster({ workers: 1 });
  await restart('extension-short', '--target-deadline', '2s');
});
afterAll(async () => await scene[Symbol.asyncDispose]());

async function restart(name: string, ...more: readonly string[]): Promise<void> {
  await scene.running.stop();
  const [, ...flags] = scene.extension.commandLine;
  scene.running = await scene.cluster.startLeading(name, 'capi-extension', [...flags, ...more]);
  await scene.whenCallable('h2');
}

const failed = async (): Promise<string> =>
  await driveUpdate(scene.manager('h2'), wanted).then(String, messageOf);

async function allow(): Promise<void> {
  const role = `clusterrole/${RIGHT}`;
  const binding = `clusterrolebinding/${RIGHT}`;
  onTestFinished(async () => void (await kubectlAs('admin', ['delete', role, binding])));
  await kubectlAs('admin', [
    'create',
    'clusterrole',
    RIGHT,
    '--verb=delete',
    '--resource=machines.cluster.x-k8s.io',
  ]);
  await kubectlAs('admin', [
    'create',
    'clusterrolebinding',
    RIGHT,
    `--clusterrole=${RIGHT}`,
    '--user=refit-capi',
  ]);
}

test('if deletion of stuck Machines is off, the update of a silent Machine fails and the Machine stays', async () => {
  const { client, agents } = scene.cluster;
  await agents.get(NODE)?.stop();
  await writeDesired(scene.manager('h2'), wanted);
  for (let call = 0; call < 2; call++) expect(await failed()).toMatch(new RegExp(`${deadline}$`));
  expect(
    (await client.get(machines, wanted.machine, { namespace: 'default' })).metadata
      .deletionTimestamp,
  ).toBeUndefined();
});

test('it is deleted once its node has been silent for long enough, and only with the right to do that', async () => {
  const { client } = scene.cluster;
  const { machine } = wanted;
  await restart('extension-deleting', '--target-deadline', '2s', '--delete-stuck-after', '2s');
  await createDeployment(client, 'workers', TO);
  const patch = { metadata: { ownerReferences: [await setOf(client, 'workers')] } };
  await client.patch(machines, machine, patch, { namespace: 'default', type: 'merge' });
  expect(await failed()).toContain(
    `${deadline}; its Machine is deleted once the node has reported nothing new for 2 s`,
  );
  await vi.waitFor(
    async () => expect(await failed()).toMatch(/cannot delete resource "machines"/),
    PATIENCE,
  );
  await allow();
  await vi.waitFor(
    async () => expect(await failed()).toContain(`${deadline}; its Machine was deleted`),
    PATIENCE,
  );
  expect(await ifFound(client.get(machines, machine, { namespace: 'default' }))).toBeUndefined();
});
