/** Tests the hooks for Cluster API with one extension that serves two clusters. Each cluster has its own API server. */
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { stringify } from 'yaml';
import { type Cluster, startCluster } from '../../sandbox/cluster/cluster.ts';
import {
  askCanUpdate,
  askUpdate,
  driveUpdate,
  writeDesired,
} from '../../sandbox/cluster/machine-manager.ts';
import {
  CLUSTER,
  createDeployment,
  createMachine,
  joinNode,
  machineSets,
  setOf,
} from '../../sandbox/cluster/machines.ts';
import { machineDeployments, machines, SET_LABELS } from '../../src/api/capi/machine.ts';
import { updaterSets } from '../../src/api/refit/updater-set.ts';
import { leases, nodes, secrets } from '../../src/kube/resources.ts';
import { type ControlPlane, startControlPlane } from '../../tools/controlplane/control-plane.ts';
import { freePort } from '../../tools/controlplane/ports.ts';
import { startTcpProxy, type TcpProxy } from '../faults/tcp-proxy.ts';
import { buildUpdaterSet } from '../support/builders/updater-sets.ts';
import {
  AFTER,
  FLAGS_BESIDE_K0S,
  FROM,
  type MachineCluster,
  machineOf,
  openMachineCluster,
  TO,
} from '../support/capi/machine-cluster.ts';
import { apply, kubeconfigFor, kubectlAs, SPARING } from './control-plane.ts';
import { runRefit } from './refit-process.ts';

const PATIENCE = { timeout: 150_000, interval: 200 };
const ROLE = 'deploy/rbac-capi-clusters.yaml';
// The Node of each of these Machines is worker1 of its own cluster.
const HERE = machineOf('worker1');
const THERE = 'machine-of-the-other-worker1';
const OTHER = 'other';
const namespace = 'default';

const started = new AsyncDisposableStack();
let scene: MachineCluster;
let plane: ControlPlane;
let other: Cluster;
let proxy: TcpProxy;
let metrics: string;
let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-clusters-'));
  started.defer(async () => await rm(directory, { recursive: true }));
  scene = await openMachineCluster({ workers: 2 });
  started.use(scene);
  plane = await startControlPlane({ environment: SPARING, log: () => undefined });
  started.defer(async () => await plane.stop());
  const hosts = { controllers: 0, workers: 1, version: FROM, offers: [], restartDelayMs: 300 };
  other = await startCluster({ ...hosts, agentFlags: FLAGS_BESIDE_K0S, plane, directory });
  started.defer(async () => await other.stop());
  const machine = { name: THERE, node: 'worker1', version: FROM, cluster: OTHER };
  await joinNode(other.client, machine);
  await createMachine(scene.cluster.client, machine);
  await createMachine(scene.cluster.client, {
    ...machine,
    name: 'stray',
    node: 'worker2',
    version: TO,
  });
  proxy = await startTcpProxy({ target: { host: '127.0.0.1', port: plane.port } });
  started.defer(async () => await proxy.stop());

  await scene.running.stop();
  await apply(await readFile(ROLE, 'utf8'));
  started.defer(async () => void (await kubectlAs('admin', ['delete', '-f', ROLE])));
  await writeSecret(CLUSTER, await readFile(await kubeconfigFor('admin'), 'utf8'));
  const direct = await readFile(await plane.kubeconfig('admin'), 'utf8');
  await writeSecret(OTHER, direct.replaceAll(String(plane.port), String(proxy.port)));
  const health = `127.0.0.1:${await freePort()}`;
  metrics = `http://${health}/metrics`;
  const [, ...flags] = scene.extension.commandLine;
  const more = [
    '--workload-clusters',
    namespace,
    '--call-timeout',
    '3s',
    '--health-address',
    health,
  ];
  scene.running = await scene.cluster.startLeading('extension-many', 'capi-extension', [
    ...flags,
    ...more,
  ]);
  // The extension stops before the clusters that it serves.
  started.defer(async () => await scene.running.stop());
  await scene.whenCallable('h2');
});

afterAll(async () => await started.disposeAsync());

/** Writes the Secret as Cluster API does. It is deleted at the end of this file. */
async function writeSecret(cluster: string, kubeconfig: string): Promise<void> {
  const { client } = scene.cluster;
  const name = `${cluster}-kubeconfig`;
  const data = { value: Buffer.from(kubeconfig).toString('base64') };
  const metadata = { name, namespace, labels: { 'cluster.x-k8s.io/cluster-name': cluster } };
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'cluster.x-k8s.io/secret',
    metadata,
    data,
  };
  await client.patch(secrets, name, secret, {
    type: 'apply',
    namespace,
    fieldManager: 'cluster-api',
    force: true,
  });
  started.defer(
    async () => await client.delete(secrets, name, { namespace }).catch(() => undefined),
  );
}

const WAITS = { status: 'Success', retryAfterSeconds: 2 };
const ask = async (machine: string) =>
  await askUpdate(scene.manager('h2'), { machine, version: TO });

async function whenClaimed(machine: string): Promise<void> {
  await vi.waitFor(
    async () =>
      expect(await askCanUpdate(scene.manager('h2'), { machine, version: TO })).toEqual([]),
    PATIENCE,
  );
}

async function leaderIn({ client }: Pick<Cluster, 'client'>): Promise<string | undefined> {
  return (await client.get(leases, 'refit-capi-extension', { namespace: 'refit-system' })).spec
    ?.holderIdentity;
}

test('each cluster has its own leader, and metrics name the cluster', async () => {
  await Promise.all([whenClaimed(HERE), whenClaimed(THERE)]);
  for (const each of [scene.cluster, other])
    await vi.waitFor(async () => expect(await leaderIn(each)).toMatch(/./), PATIENCE);
  const text = async (): Promise<string> => await (await fetch(metrics)).text();
  for (const cluster of [CLUSTER, OTHER])
    await vi.waitFor(
      async () =>
        expect(await text()).toMatch(
          new RegExp(`^leader.*workload_cluster="default/${cluster}".* 1$`, 'm'),
        ),
      PATIENCE,
    );
});

test('a preview tells for each Machine what the hooks would answer, and writes nothing', async () => {
  const { client } = scene.cluster;
  await apply(await readFile('deploy/crds/upgrade.refit.dev_updatersets.yaml', 'utf8'));
  const preview = async (...flags: string[]): Promise<string[]> => {
    const all = [
      'preview',
      '--cluster',
      CLUSTER,
      ...flags,
      '--kubeconfig',
      await kubeconfigFor('admin'),
    ];
    const { stdout, stderr, code } = await runRefit(...all, '--output', 'json');
    if (code !== 0) throw new Error(stderr.join('\n'));
    const rows = JSON.parse(stdout.join('\n')) as Record<
      'machine' | 'outcome' | 'why' | 'owner',
      string | undefined
    >[];
    expect(rows.map(({ machine }) => machine)).toEqual([HERE, machineOf('worker2')]);
    return rows.map(({ outcome, why, owner }) =>
      [`${outcome}: ${why}`, ...(owner === undefined ? [] : [owner])].join(' of '),
    );
  };
  const both = (row: string): string[] => [row, row];
  expect(await preview('--to', TO)).toEqual(both('stays: it belongs to no MachineDeployment'));

  await createDeployment(client, 'workers', TO);
  const owner = await setOf(client, 'workers');
  onTestFinished(async () => {
    await client.delete(machineSets, owner.name, { namespace });
    await client.delete(machineDeployments, 'workers', { namespace });
  });
  const labels = { [SET_LABELS.deployment]: 'workers', [SET_LABELS.hash]: 'x7k2p' };
  const ofSet = { labels, ownerReferences: [owner] };
  for (const name of [HERE, machineOf('worker2')])
    await client.patch(machines, name, { metadata: ofSet }, { type: 'merge', namespace });
  const before = await client.listAll(machines, { namespace });
  expect(await preview('--to', TO)).toEqual(
    both(
      'in place: covers machine.spec.version; not covered: nothing of MachineDeployment default/workers',
    ),
  );
  expect((await preview('--to', 'v1.38.0'))[0]).toMatch(/^replaced: covers nothing: /);
  expect(await preview('--to', FROM)).toEqual(both('stays: it has this version already'));
  await expect(preview('--to', 'latest')).rejects.toThrow(
    'and --to is "latest"; expected the name of a Cluster and a',
  );
  await createMachine(client, { name: 'lost', version: FROM, node: 'worker2', cluster: 'lost' });
  await expect(preview('--to', TO, '--cluster', 'lost')).rejects.toThrow(
    'no Secret default/lost-kubeconfig, in which',
  );
  await client.delete(machines, 'lost', { namespace });

  const set = buildUpdaterSet('preview', [{ name: 'own', nodeConfiguration: {} }], {
    uncovered: 'Ask',
  });
  await client.create(updaterSets, set);
  const why = 'because it covers nothing; not covered: machine.spec.version';
  const ask = `refit approve machineset/${owner.name} --namespace ${namespace}`;
  expect(await preview('--to', TO)).toEqual(
    both(
      `waits: UpdaterSet preview: waits for approval, ${why}; to approve the replacement, run: ${ask}`,
    ),
  );
  expect((await client.get(updaterSets, 'preview')).status).toBeUndefined();
  const status = { approved: [`MachineSet ${namespace}/${owner.name}`] };
  await client.patch(updaterSets, 'preview', { status }, { type: 'merge', subresource: 'status' });
  expect(await preview('--to', TO)).toEqual(
    both('replaced: covers nothing; not covered: machine.spec.version'),
  );
  await client.delete(updaterSets, 'preview');
  expect((await client.listAll(machines, { namespace })).items).toEqual(before.items);
  // The owners are removed, because the other tests use no MachineDeployment.
  const metadata = { labels: null, ownerReferences: null };
  for (const name of [HERE, machineOf('worker2')])
    await client.patch(machines, name, { metadata }, { type: 'merge', namespace });
});

test('a Machine that names a Node of the other cluster touches nothing there', async () => {
  const { client } = scene.cluster;
  const before = await client.get(nodes, 'worker2');
  const missing = expect.stringContaining('nodes "worker2" not found') as unknown;
  expect(await ask('stray')).toMatchObject({ ...WAITS, message: missing });
  expect((await client.get(nodes, 'worker2')).metadata.annotations).toEqual(
    before.metadata.annotations,
  );
});

test('a cluster is cut off: its Machines wait, those of the other one are updated', async () => {
  await writeDesired(scene.manager('h2'), { machine: THERE, version: TO });
  proxy.partition();
  await scene.update('worker1', scene.manager('h2'));
  expect((await scene.cluster.client.get(nodes, 'worker1')).status?.nodeInfo?.kubeletVersion).toBe(
    TO,
  );
  expect(await ask(THERE)).toMatchObject(WAITS);
  expect((await other.client.get(nodes, 'worker1')).status?.nodeInfo?.kubeletVersion).toBe(FROM);
});

test('a kubeconfig that was replaced is used, without a restart', async () => {
  await writeSecret(OTHER, await readFile(await plane.kubeconfig('admin'), 'utf8'));
  await driveUpdate(scene.manager('h2'), { machine: THERE, version: TO });
  const { status, metadata } = await other.client.get(nodes, 'worker1');
  expect(status?.nodeInfo?.kubeletVersion).toBe(TO);
  expect(metadata.annotations?.['upgrade.refit.dev/machine-update']).toContain(`default/${THERE}`);
});

test('a kubeconfig that runs a command or reads a file is refused, and its cluster is not guessed', async () => {
  const mark = join(directory, 'was-run');
  const hostile = {
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster: { server: plane.url } }],
    users: [
      {
        name: 'u',
        user: {
          exec: { apiVersion: 'client.authentication.k8s.io/v1', command: 'touch', args: [mark] },
        },
      },
    ],
  };
  await writeSecret(OTHER, stringify(hostile));
  const refusal =
    'cannot connect to cluster default/other: Secret default/other-kubeconfig: exec of user "u" is not allowed';
  const wanted = { machine: THERE, version: AFTER };
  const asked = async (): Promise<unknown> =>
    await askCanUpdate(scene.manager('h2'), wanted).catch(String);
  await vi.waitFor(async () => expect(await asked()).toContain(refusal), PATIENCE);
  expect(await ask(THERE)).toMatchObject({
    ...WAITS,
    message: expect.stringContaining(refusal) as unknown,
  });
  expect(await askCanUpdate(scene.manager('h2'), { machine: HERE, version: AFTER })).toEqual([]);
  expect(existsSync(mark)).toBe(false);
});

test('a cluster whose Secret is gone is left: its lease is free', async () => {
  await writeSecret(OTHER, await readFile(await plane.kubeconfig('admin'), 'utf8'));
  await vi.waitFor(async () => expect(await leaderIn(other)).toMatch(/./), PATIENCE);
  await scene.cluster.client.delete(secrets, `${OTHER}-kubeconfig`, { namespace });
  await vi.waitFor(async () => expect(await leaderIn(other)).toBe(''), PATIENCE);
  expect(await ask(THERE)).toMatchObject(WAITS);
});
