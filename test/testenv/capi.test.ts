/** The proof of the Cluster API front door: Machines updated through the hooks, on a real API server, by the documented users. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { UpdateMachineResponse } from '../../src/api/capi/hooks.ts';
import { machines } from '../../src/api/capi/machine.ts';
import { customResourceDefinitions } from '../../src/api/crd.ts';
import type { Host } from '../../src/embedded/hosts/host.ts';
import { nodes } from '../../src/kube/resources.ts';
import type { Node } from '../../src/kube/types.ts';
import { systemClock } from '../../src/util/clock.ts';
import { type Cluster, payloadPath, startCluster } from '../../tools/cluster/cluster.ts';
import { type Extension, prepareExtension } from '../../tools/cluster/hook-extension.ts';
import { createMachine, installMachines } from '../../tools/cluster/machines.ts';
import type { Process } from '../../tools/controlplane/process.ts';
import { type CallerOptions, callHook, type Protocol } from '../capi/hook-caller.ts';
import { askCanUpdate, driveUpdate, type ManagerOptions, writeDesired } from '../capi/machine-manager.ts';
import { type Sighting, watchSignals } from '../expectations/signal-watch.ts';
import { reviewAccess } from './access-review.ts';
import { controlPlane, kubeconfigFor, kubectlAs } from './control-plane.ts';

const FROM = 'v1.35.0';
const TO = 'v1.35.1';
const NODES = ['worker1', 'worker2', 'worker3'];
const CONTROL_PLANE = 'worker3';
const STATUSES = ['', 'Downloading', 'Cordoning', 'ApplyingUpdate', 'Restart', 'UnCordoning', 'Completed'];

const stop = new AbortController();
let directory = '';
let cluster: Cluster;
let extension: Extension;
let running: Process;
let sightings: readonly Sighting[] = [];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-capi-'));
  cluster = await startCluster({
    plane: { url: controlPlane().url, kubeconfig: kubeconfigFor },
    directory,
    controllers: 0,
    workers: NODES.length,
    version: FROM,
    offers: [TO],
    restartDelayMs: 300,
  });
  await installMachines(cluster.client, systemClock);
  for (const node of NODES) {
    const controlPlane = node === CONTROL_PLANE;
    await createMachine(cluster.client, { name: machineOf(node), version: FROM, node, controlPlane });
  }
  sightings = await watchSignals(cluster.client, stop.signal);
  extension = await prepareExtension({ cluster, directory, kubeconfig: await kubeconfigFor('capi') });
  running = await extension.start('extension');
}, 120_000);

afterAll(async () => {
  stop.abort();
  await cluster.client.delete(customResourceDefinitions, 'machines.cluster.x-k8s.io');
  for (const name of NODES) await cluster.client.delete(nodes, name);
  await cluster.stop();
  await rm(directory, { recursive: true });
});

function machineOf(node: string): string {
  return `machine-of-${node}`;
}

function callerOf(protocol: Protocol): CallerOptions {
  return { url: extension.url, authority: extension.authority, protocol };
}

function manager(protocol: Protocol, onCall: ManagerOptions['onCall'] = () => undefined): ManagerOptions {
  return { client: cluster.client, caller: callerOf(protocol), clock: systemClock, onCall };
}

/** Until the extension listens: until then nobody can be called, and a manager would ask again, too. */
async function whenCallable(protocol: Protocol): Promise<void> {
  await expect
    .poll(async () => await callHook(callerOf(protocol), 'discovery', {}).then(({ status }) => status), {
      timeout: 30_000,
    })
    .toBe('Success');
}

async function update(node: string, options: ManagerOptions): Promise<void> {
  const wanted = { machine: machineOf(node), version: TO };
  expect(await askCanUpdate(options, wanted)).toEqual([]);
  await writeDesired(options, wanted);
  await driveUpdate(options, wanted);
}

async function expectUpdated(node: string): Promise<void> {
  const host = cluster.hosts.find(({ name }) => name === node) as Host;
  expect(await host.version()).toBe(TO);
  expect(host.starts).toBe(2);
  const { status } = await cluster.client.get(nodes, node);
  expect(status?.nodeInfo?.kubeletVersion).toBe(TO);
  expect(sightings.filter(({ name }) => name === node).map((seen) => seen.status)).toEqual(STATUSES);
  const fetched = cluster.downloads.requests.filter(
    (request) => request.node === node && request.path === payloadPath(TO) && request.complete,
  );
  expect(fetched).toHaveLength(1);
}

const annotationsOf = ({ metadata }: Node): string[] =>
  Object.keys(metadata.annotations ?? {}).filter((key) => key.startsWith('upgrade.refit.dev/'));

test.each(['h2', 'http/1.1'] as const)('discovery over %s', async (protocol) => {
  await whenCallable(protocol);
});

describe('a change that nobody covers', () => {
  test('it is named, and neither the Machine nor its Node is touched', async () => {
    const [node = ''] = NODES;
    await whenCallable('h2');
    const before = await cluster.client.get(machines, machineOf(node), { namespace: 'default' });
    const files = [{ path: '/etc/demo', content: 'two' }];
    const wanted = { machine: machineOf(node), version: TO, files };
    expect(await askCanUpdate(manager('h2'), wanted)).toEqual(['bootstrap.spec.files']);
    expect(await cluster.client.get(machines, machineOf(node), { namespace: 'default' })).toEqual(before);
    expect(annotationsOf(await cluster.client.get(nodes, node))).toEqual([]);
  });

  test('a call for a version that the Machine does not want is not believed', async () => {
    const [node = ''] = NODES;
    await expect(driveUpdate(manager('h2'), { machine: machineOf(node), version: TO })).rejects.toThrow(
      `Machine default/${machineOf(node)} wants ${FROM}, and this call ${TO}`,
    );
    expect(annotationsOf(await cluster.client.get(nodes, node))).toEqual([]);
  });
});

test('a Machine from the first question to the end, over HTTP/2', async () => {
  const answers: UpdateMachineResponse[] = [];
  await whenCallable('h2');
  const record = (answer: UpdateMachineResponse | Error): void => {
    if (!(answer instanceof Error)) answers.push(answer);
  };
  await update('worker1', manager('h2', record));
  await expectUpdated('worker1');
  const words = answers.map(({ message }) => message ?? '');
  // The same words in a row are one state: none comes back.
  const states = words.filter((message, index) => message !== words[index - 1]);
  expect(new Set(states).size).toBe(states.length);
  expect(states.slice(0, -1).every((message) => message.includes('worker1'))).toBe(true);
  expect(answers.at(-1)).toMatchObject({ status: 'Success', retryAfterSeconds: 0 });
});

test('asked again, and by a replica that never heard of it: still done, and nothing is begun', async () => {
  await running.stop();
  running = await extension.start('extension-again');
  await whenCallable('h2');
  const before = sightings.length;
  await driveUpdate(manager('h2'), { machine: machineOf('worker1'), version: TO });
  expect(sightings).toHaveLength(before);
});

test('the extension is killed after each of the first answers: the calls go on, and it is done once', async () => {
  await whenCallable('http/1.1');
  let kills = 0;
  const restarts: Promise<unknown>[] = [];
  const killSome = (answer: UpdateMachineResponse | Error): void => {
    if (answer instanceof Error || kills >= 3) return;
    kills++;
    process.kill(running.pid, 'SIGKILL');
    restarts.push(extension.start(`extension-${kills}`).then((next) => (running = next)));
  };
  await update('worker2', manager('http/1.1', killSome));
  await Promise.all(restarts);
  expect(kills).toBe(3);
  await expectUpdated('worker2');
});

test('a Machine of the control plane waits until every API server is ready', async () => {
  const { client } = cluster;
  const labels = { metadata: { labels: { 'node-role.kubernetes.io/control-plane': '' } } };
  await client.patch(nodes, CONTROL_PLANE, labels, { type: 'merge' });
  const at = async (address: string): Promise<void> => {
    const patch = { status: { addresses: [{ type: 'InternalIP', address }] } };
    await client.patch(nodes, CONTROL_PLANE, patch, { type: 'merge', subresource: 'status' });
  };
  // Nothing listens there.
  await at('127.0.0.200');
  const words: string[] = [];
  await whenCallable('h2');
  const answered = (answer: UpdateMachineResponse | Error): void => {
    if (answer instanceof Error) return;
    words.push(answer.message ?? '');
    if (words.length === 2) void at('127.0.0.1');
  };
  await update(CONTROL_PLANE, manager('h2', answered));
  expect(words).toContain(`node ${CONTROL_PLANE} waits until every API server is ready`);
  await expectUpdated(CONTROL_PLANE);
});

test('what it did stands in events of the Node', async () => {
  const reasons = ['-o', 'jsonpath={.items[*].reason}'];
  const { stdout } = await kubectlAs('viewer', [
    'get',
    'events',
    '-A',
    '--field-selector=involvedObject.name=worker1',
    ...reasons,
  ]);
  expect(stdout.split(' ')).toEqual(expect.arrayContaining(['Started', 'Completed']));
});

test('the documented user may do what is documented, and nothing else', async () => {
  const access = {
    'core/nodes': 'get list watch update',
    'core/nodes/status': '',
    'core/events@default': 'create patch',
    'core/secrets@default': '',
    'core/pods@default': '',
    'cluster.x-k8s.io/machines@default': 'get',
    'cluster.x-k8s.io/machines/status@default': '',
    'coordination.k8s.io/leases@refit-system': 'get create update',
    'coordination.k8s.io/leases@kube-system': '',
    '/readyz': 'get',
    '/metrics': '',
  };
  expect(await reviewAccess('capi', Object.keys(access))).toEqual(access);
});

test('no secret of a body stands in its log', async () => {
  const log = await readFile(join(directory, 'logs', 'extension.log'), 'utf8');
  expect(log).toContain('"hook":"CanUpdateMachine"');
  expect(log).not.toContain('/etc/demo');
});
