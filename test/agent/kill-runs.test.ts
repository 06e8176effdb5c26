/**
 * Tests that a plan completes, and that all invariants hold, if a process of Refit is killed at a random moment. Each
 * run kills one process.
 */
import { statSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { type Cluster, startCluster } from '../../sandbox/cluster/cluster.ts';
import { type Plane, startSandboxPlane } from '../../sandbox/cluster/plane.ts';
import { upgradePathsOf } from '../../src/agent/state/state-directory.ts';
import { type Plan, plans } from '../../src/api/autopilot/plan.ts';
import { CORDON_ANNOTATION } from '../../src/drain/cordon-marks.ts';
import { nodes as nodeKind } from '../../src/kube/resources.ts';
import { createInformer, type Informer } from '../../src/kube/watch/informer.ts';
import { SIGNAL_STATUSES } from '../../src/signal/names.ts';
import { sleep, systemClock } from '../../src/util/clock.ts';
import type { Process } from '../../tools/controlplane/process.ts';
import { seededRandom } from '../faults/random.ts';
import { greatestOverlap, Motion } from '../support/expectations/motion.ts';
import { type Sighting, watchSignals } from '../support/expectations/signal-watch.ts';
import { WHOLE } from '../support/whole.ts';

const FIRST_SEED = Number(process.env['REFIT_SEED'] ?? 1);
const CONTROLLERS = ['controller1', 'controller2'];
const WORKERS = ['worker1', 'worker2', 'worker3'];
const VICTIMS = ['refit-controller', ...CONTROLLERS, ...WORKERS];
/** Each process is killed at least once. */
const RUNS = WHOLE ? 50 : VICTIMS.length;
/** Each run upgrades every node to the next version, because Refit downgrades nothing unless a policy allows it. */
const VERSIONS = Array.from({ length: RUNS + 1 }, (_, index) => `v1.36.3+k0s.${index}`);
const CONCURRENT = 2;
const MAX_DELAY_MS = 60;
const PATIENCE = { timeout: 150_000, interval: 25 };

const stop = new AbortController();
let directory = '';
let plane: Plane;
let cluster: Cluster;
let controller: Process;
let sightings: readonly Sighting[] = [];
/** An informer, because one request for each poll of `waitUntil` would cost too much time. */
let planWatch: Informer<Plan>;
let outages = new Motion();

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-kill-'));
  plane = await startSandboxPlane(directory);
  cluster = await startCluster({
    plane,
    directory,
    controllers: CONTROLLERS.length,
    workers: WORKERS.length,
    version: versionAt(0),
    offers: VERSIONS,
    restartDelayMs: 50,
    onService: (host, running) => outages[running ? 'end' : 'begin'](host, performance.now()),
  });
  sightings = await watchSignals(cluster.client, stop.signal);
  planWatch = createInformer(cluster.client, plans);
  void planWatch.run(stop.signal);
  await planWatch.whenSynced(stop.signal);
  controller = await startController();
});

afterAll(async () => {
  stop.abort();
  await cluster.stop();
  await plane.stop();
  await rm(directory, { recursive: true });
});

/** A new leader must wait until the Lease of the killed leader has expired, so the duration of the Lease is short. */
async function startController(): Promise<Process> {
  return await cluster.startController('refit-controller', ['--lease-duration', '2s']);
}

async function kill(child: Process): Promise<void> {
  process.kill(child.pid, 'SIGKILL');
  await child.stop();
}

/** The state of the download when a process died. Bytes that the server had sent may never have reached the disk. */
interface Death {
  /** True if the agent died while its host had only a part of the file. */
  readonly cutShort: boolean;
}

async function killAndRestart(victim: string, version: string): Promise<Death> {
  const host = cluster.hosts.find(({ name }) => name === victim);
  if (!host) {
    await kill(controller);
    controller = await startController();
    return { cutShort: false };
  }
  const agent = cluster.agents.get(victim);
  if (agent) await kill(agent);
  const { part, staged } = upgradePathsOf(host.binary);
  const whole = sizeOf(join(directory, 'payloads', version));
  const cutShort = sizeOf(part) < whole && sizeOf(staged) < whole;
  await cluster.startAgent(host);
  return { cutShort };
}

/** Returns the size of the file in bytes; 0 if the file does not exist. */
function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

function versionAt(index: number): string {
  return VERSIONS[index] ?? '';
}

/** Returns the final state of the plan; empty until the plan has ended. */
function finalState(): string {
  const state = planWatch.get('autopilot')?.status?.state ?? '';
  return state.startsWith('Schedulable') ? '' : state;
}

async function deletePlan(): Promise<void> {
  await cluster.client.delete(plans, 'autopilot');
  await vi.waitUntil(() => planWatch.get('autopilot') === undefined, PATIENCE);
}

async function logOf(node: string): Promise<string> {
  return await readFile(join(directory, 'logs', `agent-${node}.log`), 'utf8');
}

/** Returns the steps of one run from the log of an agent, in order. */
function stepsIn(log: string): string[] {
  return [...log.matchAll(/"step":"([^"]+)"/g)].map(([, step = '']) => step);
}

/**
 * Reports whether a signal arrived while the agent downloaded in advance. The signal ends this request, so the agent
 * downloads again the bytes that the server had sent and the agent had not read.
 */
function isSignalledWhileFetching(log: string): boolean {
  return log.includes('"fetching ahead"') && !log.includes('"fetched ahead"');
}

function expectForwardOnly(own: readonly Sighting[]): void {
  const steps = own.map(({ status }) => ['', ...SIGNAL_STATUSES].indexOf(status as 'Completed'));
  expect(steps).toEqual([...new Set(steps)].toSorted((a, b) => a - b));
  expect(own.at(-1)?.status).toBe('Completed');
}

function expectOrder(): void {
  const down = outages.intervals();
  const controllers = down.filter(({ name }) => CONTROLLERS.includes(name));
  const workers = down.filter(({ name }) => WORKERS.includes(name));
  expect(controllers.map(({ name }) => name)).toEqual(CONTROLLERS);
  expect(greatestOverlap(controllers)).toBe(1);
  expect(workers.map(({ name }) => name).toSorted()).toEqual(WORKERS);
  expect(greatestOverlap(workers)).toBeLessThanOrEqual(CONCURRENT);
  expect(Math.min(...workers.map(({ from }) => from))).toBeGreaterThan(
    Math.max(...controllers.map(({ to }) => to)),
  );
}

test.each(Array.from({ length: RUNS }, (_, index) => FIRST_SEED + index))(
  'seed %i',
  async (seed) => {
    const random = seededRandom(seed);
    const victim = VICTIMS[seed % VICTIMS.length] ?? '';
    const nodes = [...CONTROLLERS, ...WORKERS];
    // A node that has downloaded in advance does not report `Downloading`.
    const moment = Math.floor(random() * nodes.length * SIGNAL_STATUSES.length);
    const delay = random() * MAX_DELAY_MS;
    const version = versionAt(seed - FIRST_SEED + 1);
    const id = `seed-${seed}`;
    const before = { sightings: sightings.length, requests: cluster.downloads.requests.length };
    const logSizes = new Map(
      await Promise.all(nodes.map(async (node) => [node, (await logOf(node)).length] as const)),
    );
    outages = new Motion();

    onTestFinished(deletePlan);
    await cluster.client.create(plans, cluster.plan({ id, version, concurrent: CONCURRENT }));
    await vi.waitUntil(() => sightings.length - before.sightings >= moment, PATIENCE);
    await sleep(systemClock, delay);
    const { cutShort } = await killAndRestart(victim, version);
    const state = await vi.waitUntil(finalState, PATIENCE);

    expect(state).toBe('Completed');
    expectOrder();
    for (const host of cluster.hosts) {
      expect(await host.version()).toBe(version);
      expectForwardOnly(
        sightings.filter(({ name, planId }) => name === host.name && planId === id),
      );
      const told = (await logOf(host.name)).slice(logSizes.get(host.name) ?? 0);
      const steps = stepsIn(told);
      // A file that was downloaded in advance needs neither step.
      if (steps.includes('download') || steps.includes('trial-run'))
        expect(steps.lastIndexOf('download')).toBeLessThan(steps.indexOf('trial-run'));
      const requests = cluster.downloads.requests
        .slice(before.requests)
        .filter(({ node }) => node === host.name);
      const whole = requests.filter(({ complete, from }) => complete && from === 0).length;
      const isCut = (cutShort && host.name === victim) || isSignalledWhileFetching(told);
      expect(whole).toBeLessThanOrEqual(isCut ? 2 : 1);
    }
    for (const { spec, metadata } of (await cluster.client.list(nodeKind)).items) {
      expect(spec?.unschedulable ?? false).toBe(false);
      expect(metadata.annotations).not.toHaveProperty(CORDON_ANNOTATION);
    }
  },
);
