/**
 * Tests how agents maintain their own objects apart from updates, on a real API server and with the documented rights
 * only.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { startDownloadServer } from '../../sandbox/hosts/download-server.ts';
import {
  agentArguments,
  type Host,
  type HostOptions,
  startHost,
} from '../../sandbox/hosts/host.ts';
import { REFIT } from '../../sandbox/refit.ts';
import { leaseDelegation } from '../../src/agent/maintenance/lease-delegation.ts';
import { type Maintenance, nodeMaintenance } from '../../src/agent/maintenance/node-maintenance.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { type Lease, leases, nodes } from '../../src/kube/resources.ts';
import { isForbidden } from '../../src/kube/status-error.ts';
import { decodeSignal, encodeSignal } from '../../src/signal/annotations.ts';
import {
  CENTRAL_CORDONING_LABEL,
  type ControlNode,
  controlNodes,
  MODE_ANNOTATION,
} from '../../src/signal/names.ts';
import { microTime, rfc3339, systemClock } from '../../src/util/clock.ts';
import { silentLogger } from '../../src/util/log.ts';
import { type AgentProcess, startAgentProcess } from '../agent/agent-process.ts';
import { electSilentLeader } from '../agent/leader-lease.ts';
import { apply, installKinds, kubeconfigFor, kubectlAs, type User } from './control-plane.ts';
import { clientOf, PATIENCE, Stage } from './drain-stage.ts';
import { Workloads } from './drain-workloads.ts';

const VERSION = 'v1.36.3+k0s.0';
const { signal: abort } = new AbortController();
let admin: KubeClient;
let things = new AsyncDisposableStack();

beforeAll(async () => {
  admin = await clientOf('admin');
});
afterEach(async () => {
  await things.disposeAsync();
  things = new AsyncDisposableStack();
});
afterAll(() => admin.close());

async function startStandIn(name: string, more: Partial<HostOptions> = {}): Promise<Host> {
  const directory = await mkdtemp(join(tmpdir(), 'refit-reg-'));
  things.defer(async () => await rm(directory, { recursive: true }));
  const host = await startHost({ name, role: 'controller', directory, version: VERSION, ...more });
  things.defer(async () => await host.stop());
  // Deletes the object, because later tests would probe every registered controller.
  things.defer(
    async () =>
      void (await kubectlAs('admin', ['delete', 'controlnode', name, '--ignore-not-found'])),
  );
  return host;
}

async function startAgent(host: Host, user: User, ...more: string[]): Promise<AgentProcess> {
  const agent = startAgentProcess(
    [process.execPath, REFIT],
    [...agentArguments(host, await kubeconfigFor(user)), ...more],
  );
  things.defer(async () => void (await agent.stop('SIGKILL')));
  return agent;
}

const read = async (name: string): Promise<ControlNode> => await admin.get(controlNodes, name);
const shows = async (name: string, expected: object): Promise<void> =>
  await vi.waitFor(async () => expect(await read(name)).toMatchObject(expected), PATIENCE);

const registered = (name: string): object => ({
  metadata: {
    labels: { 'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux' },
    annotations: { [MODE_ANNOTATION]: 'controller' },
  },
  status: {
    addresses: [
      { address: '10.0.0.7', type: 'InternalIP' },
      { address: name, type: 'Hostname' },
    ],
    k0sVersion: VERSION,
  },
});

test('an agent that starts before the ControlNode CRD exists registers when the CRD is created', async () => {
  const name = 'reg-early';
  await kubectlAs('admin', [
    'delete',
    'crd',
    'controlnodes.autopilot.k0sproject.io',
    '--ignore-not-found',
  ]);
  const agent = await startAgent(
    await startStandIn(name),
    { controlNode: name },
    '--api-address',
    '10.0.0.7',
  );
  await vi.waitFor(() => expect(agent.log.join('\n')).toContain('watch failed'), PATIENCE);
  await installKinds();
  await shows(name, registered(name));
});

test('a deleted object is created again, a changed one is repaired, and foreign fields stay', async () => {
  await installKinds();
  const name = 'reg-kept';
  await startAgent(await startStandIn(name), { controlNode: name }, '--api-address', '10.0.0.7');
  await shows(name, registered(name));
  const { uid } = (await read(name)).metadata;
  await admin.delete(controlNodes, name);
  await shows(name, registered(name));
  expect((await read(name)).metadata.uid).not.toBe(uid);
  const labels = { 'kubernetes.io/os': 'plan9', pool: 'blue' };
  const spoiled = {
    metadata: { labels, annotations: { [MODE_ANNOTATION]: 'controller+worker', theirs: 'kept' } },
  };
  await admin.patch(controlNodes, name, spoiled, { type: 'merge' });
  await admin.patch(
    controlNodes,
    name,
    { status: { k0sVersion: 'v0' } },
    { type: 'merge', subresource: 'status' },
  );
  await shows(name, registered(name));
  expect((await read(name)).metadata).toMatchObject({
    labels: { pool: 'blue' },
    annotations: { theirs: 'kept' },
  });
});

test('the next agent writes nothing when nothing is wrong', async () => {
  await installKinds();
  const name = 'reg-quiet';
  const host = await startStandIn(name);
  const first = await startAgent(host, { controlNode: name }, '--api-address', '10.0.0.7');
  await shows(name, registered(name));
  await first.stop('SIGTERM');
  const { resourceVersion } = (await read(name)).metadata;
  const next = await startAgent(host, { controlNode: name });
  await vi.waitFor(() => expect(next.log.join('\n')).toContain('agent started'), PATIENCE);
  // Makes a change that the agent must repair. After the repair, the agent has certainly observed the object. So it
  // wrote nothing before because there was nothing to write.
  await admin.patch(
    controlNodes,
    name,
    { status: { k0sVersion: 'v0' } },
    { type: 'merge', subresource: 'status' },
  );
  await shows(name, registered(name));
  expect(next.log.filter((line) => /registered|registration updated/.test(line))).toEqual([]);
  // The agent logs the line after the write.
  const updates = (): string[] => next.log.filter((line) => line.includes('status updated'));
  await vi.waitFor(() => expect(updates()).toHaveLength(1), PATIENCE);
  expect(Number((await read(name)).metadata.resourceVersion)).toBeGreaterThan(
    Number(resourceVersion),
  );
});

test.each([
  ['by apply', ['apply', '--server-side', '-f', '-']],
  ['by create', ['create', '-f', '-']],
])('an agent creates no object of another name: %s', async (_name, args) => {
  await installKinds();
  const object = {
    apiVersion: 'autopilot.k0sproject.io/v1beta2',
    kind: 'ControlNode',
    metadata: { name: 'reg-other' },
  };
  const { ok, stderr } = await kubectlAs({ controlNode: 'reg-own' }, args, JSON.stringify(object));
  expect({ ok, stderr }).toEqual({
    ok: false,
    stderr: expect.stringContaining('orbidden') as string,
  });
});

test('the agent reads Node name and bundle directory from the service, and gets a bundle on that Node', async () => {
  await installKinds();
  const name = 'reg-both';
  const node = 'reg-both-edge';
  const rights = await readFile('deploy/rbac-controlnode-workloads.yaml', 'utf8');
  await apply(rights.replaceAll('CONTROL_NODE', name).replaceAll('NODE', node));
  await admin.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: node } });
  things.defer(async () => await admin.delete(nodes, node));
  const data = await mkdtemp(join(tmpdir(), 'refit-data-'));
  things.defer(async () => await rm(data, { recursive: true }));
  const bundle = join(data, 'bundle.tar');
  await writeFile(bundle, 'images');
  const server = await startDownloadServer({ files: { '/bundle.tar': bundle } });
  things.defer(async () => await server.stop());
  const flags = [
    '--enable-worker',
    '--data-dir',
    data,
    `--kubelet-extra-args=--v=2 --hostname-override=${node}`,
  ];
  const host = await startStandIn(name, { flags });
  const told = agentArguments(host, await kubeconfigFor({ controlNode: name }));
  // All arguments except the data directory, which the agent must find itself.
  const args = told.filter((word, i) => word !== '--data-dir' && told[i - 1] !== '--data-dir');
  const agent = startAgentProcess(
    [process.execPath, REFIT],
    [...args, '--unverified-downloads', 'allow'],
  );
  things.defer(async () => void (await agent.stop('SIGKILL')));
  await shows(name, {
    metadata: {
      labels: { 'kubernetes.io/hostname': node },
      annotations: { [MODE_ANNOTATION]: 'controller+worker' },
    },
  });
  await vi.waitFor(
    async () => expect((await leaseOf(node)).metadata.labels).toMatchObject(MARK),
    PATIENCE,
  );
  const command = {
    id: 0,
    kind: 'airgapupdate',
    url: `${server.url}/bundle.tar`,
    version: 'v1',
  } as const;
  const annotations = encodeSignal({ planId: 'p', created: rfc3339(Date.now()), command });
  await admin.patch(nodes, node, { metadata: { annotations } }, { type: 'merge' });
  await vi.waitFor(async () => {
    const signal = decodeSignal((await admin.get(nodes, node)).metadata.annotations);
    expect({ status: signal?.status?.status, log: agent.log.slice(-5) }).toMatchObject({
      status: 'Completed',
    });
  }, PATIENCE);
  expect(await readFile(join(data, 'images', 'bundle.tar'), 'utf8')).toBe('images');
});

const leaseOf = async (name: string): Promise<Lease> =>
  await admin.get(leases, name, { namespace: 'kube-node-lease' });
const MARK = { [CENTRAL_CORDONING_LABEL]: '' };

test('a node marks its own lease, whether its kubelet or the agent created it', async () => {
  const name = 'reg-node';
  await admin.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name } });
  things.defer(async () => await admin.delete(nodes, name));
  const client = await clientOf({ node: name });
  things.defer(() => client.close());
  await leaseDelegation(client).offer(name, abort);
  expect(await leaseOf(name)).toMatchObject({
    metadata: { labels: MARK },
    spec: { holderIdentity: name },
  });
  const { resourceVersion } = (await leaseOf(name)).metadata;
  await leaseDelegation(client).offer(name, abort);
  expect((await leaseOf(name)).metadata.resourceVersion).toBe(resourceVersion);

  await admin.delete(leases, name, { namespace: 'kube-node-lease' });
  const spec = { holderIdentity: name, leaseDurationSeconds: 40, renewTime: microTime(Date.now()) };
  const metadata = { name, namespace: 'kube-node-lease', labels: { theirs: 'kept' } };
  await client.create(leases, {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata,
    spec,
  });
  expect(await leaseDelegation(client).isExpected(name, abort)).toBe(true);
  expect(await leaseOf(name)).toMatchObject({
    metadata: { labels: { ...MARK, theirs: 'kept' } },
    spec,
  });
});

test('a node marks no other lease', async () => {
  const client = await clientOf({ node: 'reg-node' });
  things.defer(() => client.close());
  await expect(leaseDelegation(client).offer('reg-other', abort)).rejects.toSatisfy(isForbidden);
});

const maintenanceOf = (client: KubeClient, name: string): Maintenance =>
  nodeMaintenance({
    client,
    nodeName: () => name,
    delegation: leaseDelegation(client),
    clock: systemClock,
    random: Math.random,
    log: silentLogger,
  });

test("a node cordons, drains and uncordons itself with its kubelet's rights", async () => {
  things.use(await electSilentLeader(admin));
  const stage = await Stage.open('reg-drain');
  things.defer(async () => await stage.close());
  const set = new Workloads('reg-drain', 'reg-self');
  const scratch = { spec: { volumes: [{ name: 'scratch', emptyDir: {} }] } };
  const workloads = [
    set.of('Deployment', 'app', { replicas: 2 }, scratch),
    set.of('DaemonSet', 'daemon'),
  ];
  const name = await stage.set('reg-self', workloads, 3);
  // The stage has cordoned the node as the controller does. This change removes the cordon, because the node must
  // cordon itself.
  await stage.change(name, (node) => ({
    ...node,
    metadata: { ...node.metadata, annotations: {} },
    spec: { ...node.spec, unschedulable: false },
  }));
  const client = await clientOf({ node: name });
  things.defer(() => client.close());
  const maintenance = maintenanceOf(client, name);
  expect(await maintenance.whoCordons(abort)).toBe('self');
  await maintenance.cordonAndDrain('plan/1', { enabled: false }, abort);
  expect(await maintenance.hasCordon(abort)).toBe(false);
  await expect(
    maintenance.cordonAndDrain('plan/1', { localData: 'refuse' }, abort),
  ).rejects.toThrow(/app-.* emptyDir volume/);
  expect(await stage.podsOn(name)).toHaveLength(3);
  await maintenance.cordonAndDrain('plan/1', { gracePeriodSeconds: 1, timeoutMs: 60_000 }, abort);
  expect((await admin.get(nodes, name)).spec?.unschedulable).toBe(true);
  expect(await maintenance.hasCordon(abort)).toBe(true);
  const left = (await stage.podsOn(name)).map(({ metadata }) => metadata.name);
  expect(left).toEqual([expect.stringMatching(/^daemon-/)]);
  await maintenance.uncordon('ours', abort);
  expect((await admin.get(nodes, name)).spec?.unschedulable).toBeUndefined();
  expect(await maintenance.hasCordon(abort)).toBe(false);
});
