/**
 * Tests real processes with faults that do not end them: a leader that is stopped for longer than its Lease lasts, and
 * connections that carry no data.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { type Cluster, startCluster } from '../../sandbox/cluster/cluster.ts';
import { type Plane, startSandboxPlane } from '../../sandbox/cluster/plane.ts';
import { plans } from '../../src/api/autopilot/plan.ts';
import { LEADER_LEASE } from '../../src/dialects/autopilot/leader-lease.ts';
import { leases } from '../../src/kube/resources.ts';
import { isNotFound } from '../../src/kube/status-error.ts';
import { type Direction, startTcpProxy, type TcpProxy } from '../faults/tcp-proxy.ts';
import { greatestOverlap, Motion } from '../support/expectations/motion.ts';
import { type Sighting, watchSignals } from '../support/expectations/signal-watch.ts';

/** One version more than there are tests, so no plan is a downgrade. */
const VERSIONS = Array.from({ length: 8 }, (_, index) => `v1.36.3+k0s.${index}`);
const CONTROLLERS = ['controller1', 'controller2'];
const WORKERS = ['worker1', 'worker2'];
const CONCURRENT = 2;
const PATIENCE = { timeout: 150_000, interval: 100 };

interface Leader {
  readonly pid: number;
  readonly line: TcpProxy;
}

const stop = new AbortController();
let directory = '';
let plane: Plane;
let cluster: Cluster;
let sightings: readonly Sighting[] = [];
let outages = new Motion();
let applied = 0;
/** The proxies by name: one for each leader, and one for the agent of worker1. */
let lines: Readonly<Record<'first' | 'second' | 'worker1', TcpProxy>>;
/** One process leads and the other process waits. Each test except the last tests makes the leader change. */
let leaders: Readonly<Record<'first' | 'second', Leader>>;
let firstIdentity = '';

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-cut-'));
  plane = await startSandboxPlane(directory);
  const { hostname: host, port } = new URL(plane.url);
  const line = async (): Promise<TcpProxy> =>
    await startTcpProxy({ target: { host, port: Number(port) } });
  lines = { first: await line(), second: await line(), worker1: await line() };
  const throughLine = await kubeconfigFor(lines.worker1);
  cluster = await startCluster({
    plane: {
      ...plane,
      kubeconfig: async (user) =>
        typeof user === 'object' && user.node === 'worker1'
          ? throughLine
          : await plane.kubeconfig(user),
    },
    directory,
    controllers: CONTROLLERS.length,
    workers: WORKERS.length,
    version: versionAt(0),
    offers: VERSIONS,
    restartDelayMs: 50,
    onService: (name, running) => outages[running ? 'end' : 'begin'](name, performance.now()),
  });
  sightings = await watchSignals(cluster.client, stop.signal);
  const first = await startLeader('first');
  firstIdentity = await vi.waitUntil(holder, PATIENCE);
  leaders = { first, second: await startLeader('second') };
});

afterAll(async () => {
  stop.abort();
  await cluster.stop();
  await Promise.all(Object.values(lines).map(async (line) => await line.stop()));
  await plane.stop();
  await rm(directory, { recursive: true });
});

async function kubeconfigFor({ host, port }: TcpProxy): Promise<string> {
  const path = join(directory, `kubeconfig-${port}.json`);
  const named = { cluster: 'line', user: 'anybody' };
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'line',
    contexts: [{ name: 'line', context: named }],
    clusters: [{ name: 'line', cluster: { server: `http://${host}:${port}` } }],
    users: [{ name: 'anybody', user: {} }],
  };
  await writeFile(path, JSON.stringify(kubeconfig));
  return path;
}

async function holder(): Promise<string> {
  try {
    const { spec } = await cluster.client.get(leases, LEADER_LEASE.name, LEADER_LEASE);
    return spec?.holderIdentity ?? '';
  } catch (error) {
    if (isNotFound(error)) return '';
    throw error;
  }
}

async function startLeader(name: 'first' | 'second'): Promise<Leader> {
  const line = lines[name];
  const lease = ['--lease-duration', '2s'];
  const child = await cluster.startController(name, [
    '--kubeconfig',
    await kubeconfigFor(line),
    ...lease,
  ]);
  return { pid: child.pid, line };
}

/** Returns the process that leads. When the test ends, this function continues the process and repairs its connection. */
async function leader(): Promise<Leader & { readonly identity: string }> {
  const identity = await vi.waitUntil(holder, PATIENCE);
  const leading = identity === firstIdentity ? leaders.first : leaders.second;
  onTestFinished(() => {
    process.kill(leading.pid, 'SIGCONT');
    leading.line.heal();
  });
  return { ...leading, identity };
}

function idOf(text: string): string {
  return text.replaceAll(' ', '-');
}

function versionAt(index: number): string {
  return VERSIONS[index] ?? '';
}

/** Applies a plan. Each plan upgrades to the next version. */
async function applyPlan(id: string): Promise<string> {
  const version = versionAt(++applied);
  outages = new Motion();
  onTestFinished(deletePlan);
  await cluster.client.create(plans, cluster.plan({ id, version, concurrent: CONCURRENT }));
  return version;
}

async function deletePlan(): Promise<void> {
  await cluster.client.delete(plans, 'autopilot');
  const isGone = async (): Promise<boolean> => {
    try {
      await cluster.client.get(plans, 'autopilot');
      return false;
    } catch (error) {
      return isNotFound(error);
    }
  };
  await vi.waitUntil(isGone, PATIENCE);
}

async function isSignalled(name: string, planId: string): Promise<void> {
  await vi.waitUntil(
    () => sightings.some((each) => each.name === name && each.planId === planId),
    PATIENCE,
  );
}

async function expectCompleted(version: string): Promise<void> {
  const state = await vi.waitUntil(async () => {
    const { status } = await cluster.client.get(plans, 'autopilot');
    return status && !status.state.startsWith('Schedulable') && status.state;
  }, PATIENCE);
  expect(state).toBe('Completed');
  for (const host of cluster.hosts) expect(await host.version()).toBe(version);
  const down = outages.intervals();
  const [controllers, workers] = [CONTROLLERS, WORKERS].map((names) =>
    down.filter(({ name }) => names.includes(name)),
  );
  expect(controllers?.map(({ name }) => name)).toEqual(CONTROLLERS);
  expect(greatestOverlap(controllers ?? [])).toBe(1);
  expect(workers?.map(({ name }) => name).toSorted()).toEqual(WORKERS);
  expect(greatestOverlap(workers ?? [])).toBeLessThanOrEqual(CONCURRENT);
}

test('a leader that is stopped beyond its lease goes on beside its successor, and nothing is done twice', async () => {
  const { pid, identity } = await leader();
  const version = await applyPlan('stopped');
  await isSignalled('controller1', 'stopped');
  process.kill(pid, 'SIGSTOP');
  await vi.waitUntil(async () => (await holder()) !== identity, PATIENCE);
  process.kill(pid, 'SIGCONT');
  await expectCompleted(version);
});

test.each<[string, Direction | undefined]>([
  ['reaches nobody', 'there'],
  ['hears nothing', 'back'],
  ['is cut off', undefined],
])(
  'a leader that %s is replaced, and does no harm once its line is fixed',
  async (name, direction) => {
    const { line, identity } = await leader();
    const version = await applyPlan(idOf(name));
    await isSignalled('controller1', idOf(name));
    line.partition(direction);
    await vi.waitUntil(async () => (await holder()) !== identity, PATIENCE);
    line.heal();
    await expectCompleted(version);
  },
);

test.each<[string, Direction | undefined]>([
  ['reaches nobody', 'there'],
  ['hears nothing', 'back'],
  ['is cut off', undefined],
])('an agent that %s ends its work once its line is fixed', async (name, direction) => {
  onTestFinished(() => lines.worker1.heal());
  const id = idOf(`agent ${name}`);
  const version = await applyPlan(id);
  await isSignalled('worker1', id);
  lines.worker1.partition(direction);
  // The other worker does not wait for worker1.
  await vi.waitUntil(
    () =>
      sightings.some(
        (each) => each.name === 'worker2' && each.planId === id && each.status === 'Completed',
      ),
    PATIENCE,
  );
  lines.worker1.heal();
  await expectCompleted(version);
});
