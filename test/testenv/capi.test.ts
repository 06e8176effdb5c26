/** Tests the hooks for Cluster API: Machines updated on a real API server, by the documented users. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { askCanUpdate, driveUpdate } from '../../sandbox/cluster/machine-manager.ts';
import { payloadPath } from '../../sandbox/cluster/served-versions.ts';
import type { Host } from '../../sandbox/hosts/host.ts';
import type { UpdateMachineResponse } from '../../src/api/capi/hooks.ts';
import { machines } from '../../src/api/capi/machine.ts';
import { events, leases, type Node, nodes } from '../../src/kube/resources.ts';
import { encodePresence } from '../../src/signal/agent-presence.ts';
import { AGENT_ANNOTATION, HEARTBEAT_ANNOTATION } from '../../src/signal/names.ts';
import { rfc3339, systemClock } from '../../src/util/clock.ts';
import { freePort } from '../../tools/controlplane/ports.ts';
import { startTcpProxy } from '../faults/tcp-proxy.ts';
import {
  AFTER,
  FROM,
  type MachineCluster,
  machineOf,
  openMachineCluster,
  TO,
} from '../support/capi/machine-cluster.ts';
import { type Sighting, watchSignals } from '../support/expectations/signal-watch.ts';
import { controlPlane, kubeconfigFor, kubectlAs } from './control-plane.ts';

const CONTROL_PLANE = 'worker3';
const STATUSES = [
  '',
  'Downloading',
  'Cordoning',
  'ApplyingUpdate',
  'Restart',
  'UnCordoning',
  'Completed',
];
const PATIENCE = { timeout: 150_000, interval: 200 };

const stop = new AbortController();
let scene: MachineCluster;
let sightings: readonly Sighting[] = [];

beforeAll(async () => {
  scene = await openMachineCluster({ workers: 3, controlPlane: CONTROL_PLANE });
  sightings = await watchSignals(scene.cluster.client, stop.signal);
});

afterAll(async () => {
  stop.abort();
  await scene[Symbol.asyncDispose]();
});

async function expectUpdated(node: string): Promise<void> {
  const { cluster } = scene;
  const host = cluster.hosts.find(({ name }) => name === node) as Host;
  expect(await host.version()).toBe(TO);
  expect(host.starts).toBe(2);
  const { status } = await cluster.client.get(nodes, node);
  expect(status?.nodeInfo?.kubeletVersion).toBe(TO);
  // The watch of this process may deliver the last status after the answer.
  await vi.waitFor(() => expect(statusesOf(node).at(-1)).toBe('Completed'), PATIENCE);
  expect(statusesOf(node)).toEqual(STATUSES.filter((status) => statusesOf(node).includes(status)));
  const fetched = cluster.downloads.requests.filter(
    (request) => request.node === node && request.path === payloadPath(TO) && request.complete,
  );
  expect(fetched).toHaveLength(1);
}

function statusesOf(node: string): string[] {
  return sightings.filter(({ name }) => name === node).map(({ status }) => status);
}

const annotationsIn = ({ metadata }: Node): Record<string, string> => metadata.annotations ?? {};

const annotationsOf = (node: Node): string[] =>
  Object.keys(annotationsIn(node)).filter(
    // These annotations do not count, because agents write them to announce themselves.
    (key) =>
      key.startsWith('upgrade.refit.dev/') &&
      ![AGENT_ANNOTATION, HEARTBEAT_ANNOTATION].includes(key),
  );

test.each(['h2', 'http/1.1'] as const)('discovery over %s', async (protocol) => {
  await scene.whenCallable(protocol);
});

test('a Machine whose agent ended: claimed while its last heartbeat is new, then no more', async () => {
  const { client, agents } = scene.cluster;
  await scene.whenCallable('h2');
  const wanted = { machine: machineOf('worker2'), version: TO };
  await vi.waitFor(
    async () =>
      expect(annotationsIn(await client.get(nodes, 'worker2'))).toHaveProperty([
        HEARTBEAT_ANNOTATION,
      ]),
    PATIENCE,
  );
  await agents.get('worker2')?.stop();
  expect(await askCanUpdate(scene.manager('h2'), wanted)).toEqual([]);
  const at = rfc3339(systemClock.now() - 3_600_000);
  const since = rfc3339(systemClock.now() - 7_200_000);
  const annotations = {
    [HEARTBEAT_ANNOTATION]: JSON.stringify({ at, since }),
    [AGENT_ANNOTATION]: encodePresence({ version: '1.0.0', since }),
  };
  await client.patch(nodes, 'worker2', { metadata: { annotations } }, { type: 'merge' });
  // The Node is so new that its host may just have started. So the extension still waits for the agent.
  await expect(askCanUpdate(scene.manager('h2'), wanted)).rejects.toThrow(
    /the agent on node worker2 has been silent for .* and may be back soon/,
  );
  await scene.cluster.startAgent(
    scene.cluster.hosts.find(({ name }) => name === 'worker2') as Host,
  );
  await vi.waitFor(
    async () => expect(await askCanUpdate(scene.manager('h2'), wanted)).toEqual([]),
    PATIENCE,
  );
});

describe('a change that no updater covers', () => {
  test('a change that no updater covers is named, and neither the Machine nor its Node is touched', async () => {
    const node = 'worker1';
    const { client } = scene.cluster;
    await scene.whenCallable('h2');
    const before = await client.get(machines, machineOf(node), { namespace: 'default' });
    const files = [{ path: '/etc/demo', content: 'two' }];
    const wanted = { machine: machineOf(node), version: TO, files };
    expect(await askCanUpdate(scene.manager('h2'), wanted)).toEqual(['bootstrap.spec.files']);
    expect(await client.get(machines, machineOf(node), { namespace: 'default' })).toEqual(before);
    expect(annotationsOf(await client.get(nodes, node))).toEqual([]);
  });

  test('a call for a version that the Machine does not want is refused', async () => {
    const node = 'worker1';
    const { client } = scene.cluster;
    await expect(
      driveUpdate(scene.manager('h2'), { machine: machineOf(node), version: TO }),
    ).rejects.toThrow(
      `Machine default/${machineOf(node)} has spec.version ${FROM}, but the call asks for ${TO}`,
    );
    expect(annotationsOf(await client.get(nodes, node))).toEqual([]);
  });
});

test('repeated UpdateMachine calls over HTTP/2 bring a Machine to its new version', async () => {
  const answers: UpdateMachineResponse[] = [];
  await scene.whenCallable('h2');
  const record = (answer: UpdateMachineResponse | Error): void => {
    if (!(answer instanceof Error)) answers.push(answer);
  };
  await scene.update('worker1', scene.manager('h2', record));
  await expectUpdated('worker1');
  const words = answers.map(({ message }) => message ?? '');
  // The speed of the machine determines how often, and in which states, the extension is asked.
  const steps = words.flatMap((message) => /^worker1 is at (\w+)$/.exec(message)?.[1] ?? []);
  const heard = steps.filter((step, index) => step !== steps[index - 1]);
  expect(heard).toEqual(STATUSES.filter((status) => steps.includes(status)));
  expect(words.slice(0, -1).filter((message) => message.includes('worker1'))).not.toEqual([]);
  expect(answers.at(-1)).toMatchObject({ status: 'Success', retryAfterSeconds: 0 });
});

async function toldOf(node: string, reason: string): Promise<string[]> {
  const namespace = 'default';
  // Events outlive the Machines of other files, which have the same names.
  const { uid } = (await scene.cluster.client.get(machines, machineOf(node), { namespace }))
    .metadata;
  const { items } = await scene.cluster.client.list(events, {
    namespace,
    fieldSelector: `involvedObject.kind=Machine,involvedObject.uid=${uid},reason=${reason}`,
  });
  return items.map(({ message, count }) => `${count} × ${message}`);
}

test('if Cluster API calls another replica after the update, the answer is done and nothing starts', async () => {
  await scene.running.stop();
  scene.running = await scene.extension.start('extension-again');
  await scene.whenCallable('h2');
  const before = sightings.length;
  await driveUpdate(scene.manager('h2'), { machine: machineOf('worker1'), version: TO });
  expect(sightings).toHaveLength(before);
  // The Events are written after the answers. The second replica writes to the same Events, so each count stays 1.
  await vi.waitFor(async () => {
    expect(await toldOf('worker1', 'UpdateClaimed')).toContain(
      '1 × covers machine.spec.version; not covered: nothing',
    );
    expect(await toldOf('worker1', 'UpdateRequested')).toEqual([
      `1 × Update in place to ${TO} requested`,
    ]);
    expect(await toldOf('worker1', 'UpdateDone')).toEqual([`1 × Update in place to ${TO} is done`]);
  }, PATIENCE);
});

test('if the extension is killed after its first answers, the calls continue and the update runs once', async () => {
  await scene.whenCallable('http/1.1');
  let kills = 0;
  const restarts: Promise<unknown>[] = [];
  const killSome = (answer: UpdateMachineResponse | Error): void => {
    if (answer instanceof Error || kills >= 3) return;
    kills++;
    process.kill(scene.running.pid, 'SIGKILL');
    restarts.push(
      scene.extension.start(`extension-${kills}`).then((next) => {
        scene.running = next;
      }),
    );
  };
  await scene.update('worker2', scene.manager('http/1.1', killSome));
  await Promise.all(restarts);
  // At least one kill must have happened, because the first answer is never the last one.
  expect(kills).toBeGreaterThan(0);
  await expectUpdated('worker2');
});

test('a Machine of the control plane waits until every API server is ready', async () => {
  const { client } = scene.cluster;
  const labels = { metadata: { labels: { 'node-role.kubernetes.io/control-plane': '' } } };
  await client.patch(nodes, CONTROL_PLANE, labels, { type: 'merge' });
  const at = async (address: string): Promise<void> => {
    const patch = { status: { addresses: [{ type: 'InternalIP', address }] } };
    await client.patch(nodes, CONTROL_PLANE, patch, { type: 'merge', subresource: 'status' });
  };
  // No server listens at this address.
  await at('127.0.0.200');
  const waits = `the API server of ${CONTROL_PLANE} (`;
  let fixed: Promise<void> | undefined;
  await scene.whenCallable('h2');
  const answered = (answer: UpdateMachineResponse | Error): void => {
    if (fixed !== undefined || answer instanceof Error || !answer.message?.startsWith(waits))
      return;
    fixed = at('127.0.0.1');
  };
  await scene.update(CONTROL_PLANE, scene.manager('h2', answered));
  expect(fixed).toBeDefined();
  await fixed;
  await expectUpdated(CONTROL_PLANE);
});

test('Events of the Node say what it did', async () => {
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

test('its log contains no secret of a body', async () => {
  const log = await readFile(join(scene.directory, 'logs', 'extension.log'), 'utf8');
  expect(log).toContain('"hook":"CanUpdateMachine"');
  expect(log).not.toContain('/etc/demo');
});

test('while the API of the Nodes is away it starts, is ready, and answers; it leads once that is there', async () => {
  const { cluster } = scene;
  await scene.running.stop();
  const { hostname, port, host } = new URL(controlPlane().url);
  const proxy = await startTcpProxy({ target: { host: hostname, port: Number(port) } });
  onTestFinished(async () => await proxy.stop());
  proxy.partition();
  const health = `127.0.0.1:${await freePort()}`;
  const there = await kubeconfigFor('capi');
  const away = join(scene.directory, 'away.yaml');
  await writeFile(
    away,
    (await readFile(there, 'utf8')).replaceAll(host, `127.0.0.1:${proxy.port}`),
    { mode: 0o600 },
  );
  const [, , , ...flags] = scene.extension.commandLine;
  const apart = [
    '--kubeconfig',
    away,
    '--management-kubeconfig',
    there,
    '--health-address',
    health,
  ];
  scene.running = await cluster.startLeading('extension-away', 'capi-extension', [
    ...apart,
    ...flags,
  ]);
  await scene.whenCallable('h2');
  await vi.waitFor(
    async () => expect((await fetch(`http://${health}/readyz`)).status).toBe(200),
    PATIENCE,
  );
  const wanted = { machine: machineOf('worker1'), version: AFTER };
  expect(await askCanUpdate(scene.manager('h2'), { ...wanted, version: TO })).toEqual([]);
  const leader = async () =>
    (await cluster.client.get(leases, 'refit-capi-extension', { namespace: 'refit-system' })).spec
      ?.holderIdentity;
  // The previous leader has released the Lease.
  expect(await leader()).toBe('');
  proxy.heal();
  await vi.waitFor(async () => expect(await leader()).toMatch(/./), PATIENCE);
  expect(await askCanUpdate(scene.manager('h2'), wanted)).toEqual([]);
  await scene.running.stop();
});
