/**
 * Tests one documented Plan on a real API server, with the documented users. The test only observes the cluster from
 * outside.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Cluster } from '../../sandbox/cluster/cluster.ts';
import { payloadPath } from '../../sandbox/cluster/served-versions.ts';
import { type Plan, plans } from '../../src/api/autopilot/plan.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { nodes } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { AGENT_ANNOTATION, controlNodes } from '../../src/signal/names.ts';
import { greatestOverlap, type Interval, Motion } from '../support/expectations/motion.ts';
import { type Sighting, watchSignals } from '../support/expectations/signal-watch.ts';
import { auditedSince } from './audit.ts';
import { kubeconfigFor, kubectlAs } from './control-plane.ts';
import { startOwnCluster } from './own-cluster.ts';

const FROM = 'v1.36.3+k0s.0';
const TO = 'v1.36.3+k0s.2';
const CONTROLLERS = ['controller1', 'controller2', 'controller3'];
/** The field selector excludes one of seven workers. */
const WORKERS = ['worker1', 'worker2', 'worker3', 'worker4', 'worker5', 'worker6'];
const LEFT_OUT = 'worker7';
const CONCURRENT = 5;
const STATUSES = [
  '',
  'Downloading',
  'Cordoning',
  'ApplyingUpdate',
  'Restart',
  'UnCordoning',
  'Completed',
];
/**
 * The maximum of accepted writes of all processes for each node, without leases and without Events, which may be
 * dropped. Usually there are 8 to 9, as in the benchmark. A node reports one more status if it gets its signal before
 * it has downloaded the file in advance.
 */
const MUTATING_CALLS_PER_NODE = 10;
/**
 * The writes of the download check. It asks two controllers and two workers whether they can download, and they answer.
 */
const DOWNLOAD_CHECK_CALLS = 8;

const outages = new Motion();
const stop = new AbortController();
let cluster: Cluster;
let sightings: readonly Sighting[] = [];
let finished: Plan;

beforeAll(async () => {
  cluster = await startOwnCluster({
    controllers: CONTROLLERS.length,
    workers: WORKERS.length + 1,
    version: FROM,
    offers: [TO],
    restartDelayMs: 300,
    onService: (host, running) => outages[running ? 'end' : 'begin'](host, performance.now()),
  });
  const viewer = createClient(await loadClusterConfig({ path: await kubeconfigFor('viewer') }));
  sightings = await watchSignals(viewer, stop.signal);
  await cluster.startController('refit-controller');
  await vi.waitFor(expectAnnounced, { timeout: 150_000, interval: 250 });
  finished = await runPlan(documentedPlan());
});

/** An agent announces itself once in its life. The test waits for this, because it is no part of a plan. */
async function expectAnnounced(): Promise<void> {
  const controllers = (await cluster.client.listAll(controlNodes)).items;
  const workers = (await cluster.client.listAll(nodes)).items.filter(({ metadata }) =>
    WORKERS.includes(metadata.name),
  );
  expect(controllers.length + workers.length).toBe(CONTROLLERS.length + WORKERS.length);
  for (const { metadata } of [...controllers, ...workers])
    expect(metadata.annotations).toHaveProperty([AGENT_ANNOTATION]);
}

afterAll(async () => {
  stop.abort();
  await cluster.client.delete(plans, 'autopilot');
  for (const name of [...WORKERS, LEFT_OUT]) await cluster.client.delete(nodes, name);
  for (const name of CONTROLLERS) await cluster.client.delete(controlNodes, name);
  await cluster.stop();
});

function documentedPlan(): Plan {
  const plan = cluster.plan({ id: 'documented-plan', version: TO, concurrent: CONCURRENT });
  const workers = plan.spec.commands[0]?.k0supdate?.targets.workers;
  if (workers)
    workers.discovery = { selector: { labels: 'pool=blue', fields: `metadata.name!=${LEFT_OUT}` } };
  return plan;
}

/** Applies the plan with kubectl, and resolves when it has a final state. */
async function runPlan(plan: Plan): Promise<Plan> {
  const applied = await kubectlAs('admin', ['apply', '-f', '-'], JSON.stringify(plan));
  expect(applied.stderr).toBe('');
  const states = ['jsonpath={.status.state}=Completed', '--timeout=90s'];
  const waited = await kubectlAs('viewer', [
    'wait',
    'plans.autopilot.k0sproject.io/autopilot',
    `--for=${states[0]}`,
    `${states[1]}`,
  ]);
  expect(waited.stderr).toBe('');
  return await cluster.client.get(plans, 'autopilot');
}

/** Returns an interval for each node: from the first observed signal to the last report of the node. */
function inMotion(names: readonly string[]): Interval[] {
  return names.map((name) => {
    const own = sightings.filter((sighting) => sighting.name === name);
    return { name, from: own[0]?.at ?? Number.NaN, to: own.at(-1)?.at ?? Number.NaN };
  });
}

async function sha256Of(path: string): Promise<string> {
  return createHash('sha256')
    .update(await readFile(path))
    .digest('hex');
}

describe('order, seen by a watch', () => {
  test.each([...CONTROLLERS, ...WORKERS])(
    'node %s reports the statuses of its signal in order, each at most once',
    (name) => {
      const seen = sightings
        .filter((sighting) => sighting.name === name)
        .map(({ status }) => status);
      const [first] = CONTROLLERS;
      // Every node but the first may have downloaded the file in advance. Such a node does not report Downloading.
      const ways =
        name === first
          ? [STATUSES]
          : [STATUSES, STATUSES.filter((status) => status !== 'Downloading')];
      expect(ways).toContainEqual(seen);
    },
  );

  test('controllers are upgraded one by one, in the order of the list', () => {
    const intervals = inMotion(CONTROLLERS);
    for (const [index, next] of intervals.slice(1).entries())
      expect(next.from).toBeGreaterThan(intervals[index]?.to ?? 0);
  });

  test('no worker is signalled before all controllers are done', () => {
    const lastController = Math.max(...inMotion(CONTROLLERS).map(({ to }) => to));
    expect(Math.min(...inMotion(WORKERS).map(({ from }) => from))).toBeGreaterThan(lastController);
  });

  test('as many workers move at once as the plan allows, and no more', () => {
    expect(greatestOverlap(inMotion(WORKERS))).toBe(CONCURRENT);
  });

  test('nodes that the selector excludes are never signalled', () => {
    expect(sightings.filter(({ name }) => name === LEFT_OUT)).toEqual([]);
  });
});

describe('processes and files, seen on the hosts', () => {
  test('only one controller is down at a time, and no worker goes down before all controllers are upgraded', () => {
    const down = outages.intervals();
    const controllers = down.filter(({ name }) => CONTROLLERS.includes(name));
    expect(controllers.map(({ name }) => name)).toEqual(CONTROLLERS);
    expect(greatestOverlap(controllers)).toBe(1);
    const firstWorker = down.find(({ name }) => !CONTROLLERS.includes(name));
    expect(firstWorker?.from).toBeGreaterThan(Math.max(...controllers.map(({ to }) => to)));
    expect(greatestOverlap(down)).toBeLessThanOrEqual(CONCURRENT);
  });

  test.each([...CONTROLLERS, ...WORKERS])(
    'node %s restarts k0s once, runs the new binary and keeps the previous one',
    async (name) => {
      const host = cluster.hosts.find((each) => each.name === name);
      const untouched = cluster.hosts.find((each) => each.name === LEFT_OUT);
      expect(await host?.version()).toBe(TO);
      expect(host?.starts).toBe(2);
      expect(await sha256Of(host?.binary ?? '')).toBe(cluster.downloads.sha256(payloadPath(TO)));
      expect(await sha256Of(`${host?.binary}.previous`)).toBe(
        await sha256Of(untouched?.binary ?? ''),
      );
    },
  );

  test('the excluded host is unchanged', async () => {
    const host = cluster.hosts.find(({ name }) => name === LEFT_OUT);
    expect(await host?.version()).toBe(FROM);
    expect(host?.starts).toBe(1);
  });

  // A node downloads the file a second time if its signal arrived while the node was trying out the file that it had
  // downloaded in advance. Without a hash, only this trial shows that the file is usable.
  test('every node downloaded the file once, or twice if its turn came meanwhile', () => {
    const complete = cluster.downloads.requests
      .filter((request) => request.complete)
      .map(({ node }) => node);
    expect(complete.filter((node) => node === CONTROLLERS[0])).toHaveLength(1);
    expect([...new Set(complete)].toSorted()).toEqual([...CONTROLLERS, ...WORKERS]);
    expect(complete.length).toBeLessThan(2 * (CONTROLLERS.length + WORKERS.length));
  });
});

describe('the API', () => {
  test('the status of a completed Plan has the states that scripts for the original wait for', () => {
    const [command] = finished.status?.commands ?? [];
    const states = (entries: readonly { name: string; state: string }[] = []): string[][] =>
      entries.map(({ name, state }) => [name, state]);
    expect([finished.status?.state, command?.id, command?.state]).toEqual([
      'Completed',
      0,
      'Completed',
    ]);
    expect(states(command?.k0supdate?.controllers)).toEqual(
      CONTROLLERS.map((name) => [name, 'SignalCompleted']),
    );
    expect(states(command?.k0supdate?.workers)).toEqual(
      WORKERS.map((name) => [name, 'SignalCompleted']),
    );
  });

  test('only the documented users write, each only what it may, and with few writes per node', async () => {
    const writes = (await mutations()).filter(({ resource }) => resource !== 'leases');
    const allowed: Readonly<Record<string, RegExp>> = {
      'refit-controller':
        /^(plans(\/status)? autopilot|noderollouts(\/status)? autopilot-autopilot|events .*|controlnodes controller\d|nodes worker\d)$/,
      ...Object.fromEntries(
        CONTROLLERS.map((name) => [
          `refit:controlnode:${name}`,
          new RegExp(`^controlnodes(/status)? ${name}$`),
        ]),
      ),
      // Every agent announces itself.
      ...Object.fromEntries(
        [...WORKERS, LEFT_OUT].map((name) => [
          `system:node:${name}`,
          new RegExp(`^nodes ${name}$`),
        ]),
      ),
    };
    const unexpected = writes.filter(
      ({ user, resource, name }) => !allowed[user]?.test(`${resource} ${name}`),
    );
    expect(unexpected).toEqual([]);
    const [accepted, refused] = acceptedAndRefused(
      // Events and the NodeRollout are written for each plan, not for each node, so they do not count.
      writes.filter(
        ({ resource }) => resource !== 'events' && !resource.startsWith('noderollouts'),
      ),
    );
    const nodes = CONTROLLERS.length + WORKERS.length;
    expect((accepted.length - DOWNLOAD_CHECK_CALLS) / nodes).toBeLessThanOrEqual(
      MUTATING_CALLS_PER_NODE,
    );
    // The number of conflicts depends on the machine. But each conflict is caused by another write of the same object.
    expect(refused.filter(({ code }) => code !== 409)).toEqual([]);
    for (const [name, lost] of Map.groupBy(refused, (write) => write.name))
      expect(lost.length, name).toBeLessThan(
        accepted.filter((write) => write.name === name).length,
      );
  });

  test('Events report the start and the end of the plan', async () => {
    const { stdout } = await kubectlAs('viewer', [
      'get',
      'events',
      '-A',
      '--field-selector=involvedObject.kind=Plan',
      '-o',
      'jsonpath={.items[*].reason}',
    ]);
    expect(stdout.split(' ')).toEqual(expect.arrayContaining(['Started', 'Completed']));
  });
});

interface Mutation {
  readonly user: string;
  readonly resource: string;
  readonly name: string;
  /** HTTP status. */
  readonly code: number;
}

function acceptedAndRefused(writes: readonly Mutation[]): [Mutation[], Mutation[]] {
  return [writes.filter(({ code }) => code < 300), writes.filter(({ code }) => code >= 300)];
}

/** Writes of Refit's processes and of the nodes since this test's plan was created. */
async function mutations(): Promise<Mutation[]> {
  const events = await auditedSince(0);
  // Uses the audit log, because `creationTimestamp` has whole seconds and the agents announce themselves in the same
  // second.
  const created = events.findLast(
    ({ verb, objectRef }) => verb === 'create' && objectRef?.resource === 'plans',
  );
  expect(created?.responseStatus?.code).toBe(201);
  return events
    .filter(
      ({ verb, user, requestReceivedTimestamp }) =>
        ['create', 'update', 'patch', 'delete'].includes(verb) &&
        /^(refit|system:node:worker)/.test(user.username) &&
        requestReceivedTimestamp >= (created?.requestReceivedTimestamp ?? ''),
    )
    .map(({ user, objectRef, responseStatus }) => ({
      user: user.username,
      resource: [objectRef?.resource, objectRef?.subresource].filter(Boolean).join('/'),
      name: objectRef?.name ?? '',
      code: responseStatus?.code ?? 0,
    }));
}
