/**
 * Measures `refit ready` on real control planes: the planted faults that it finds, the blockers that it sees in healthy
 * clusters, whether the real scheduler agrees with it about room, and what a large cluster costs.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { runProgram } from '../../src/cli/program.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { namespaced, namespaces } from '../../src/kube/resources.ts';
import { ifNew } from '../../src/kube/status-error.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import type { ReadyReport } from '../../src/ready/finding.ts';
import { type Clock, sleep } from '../../src/util/clock.ts';
import { COMMANDS } from '../../test/support/commands.ts';
import { mebibytes } from '../../test/support/processes.ts';
import { defineKinds } from '../../test/support/ready/define-kinds.ts';
import { healthyCluster } from '../../test/support/ready/healthy-cluster.ts';
import { PLANTED, type PlantedFault } from '../../test/support/ready/planted.ts';
import { NAMESPACE, plantedNode, plantedPod } from '../../test/support/ready/planted-objects.ts';
import { randomCluster } from '../../test/support/ready/random-cluster.ts';
import { type Trial, tryRoom } from '../../test/support/ready/room-trial.ts';
import { buildProgram, PROGRAM } from '../../tools/build/refit.ts';
import { type ControlPlane, startControlPlane } from '../../tools/controlplane/control-plane.ts';
import { withObjects } from './cluster.ts';

export const HEALTHY = 200;
export const ROOMS = 100;
export const NODES = 1_000;
const PODS = 10_000;
const TARGET = 'v1.37.0';
const SAMPLE_MS = 20;

export interface ReadyParts {
  readonly directory: string;
  readonly clock: Clock;
  readonly abort: AbortSignal;
}

export interface LargeRun {
  readonly seconds: number;
  readonly rssMiB: number;
  /** The verbs of requests that are no reads. */
  readonly writes: readonly string[];
}

export interface ReadyRun {
  /** The planted faults that were not found, or with another object. */
  readonly missed: readonly string[];
  readonly planted: number;
  readonly falseBlockers: readonly string[];
  readonly trials: readonly Trial[];
  readonly large: LargeRun;
}

export async function measureReady(
  parts: ReadyParts,
  say: (line: string) => void,
): Promise<ReadyRun> {
  await using started = new AsyncDisposableStack();
  const { abort } = parts;
  // Without a controller manager, Nodes need no heartbeats, and nobody changes what was planted.
  const plain = await startControlPlane({ audit: true, log: say, abort });
  started.defer(async () => await plain.stop());
  const client = createClient(await loadClusterConfig({ path: await plain.kubeconfig('admin') }));
  started.defer(() => client.close());
  await furnish(client, abort);
  say(`planting ${PLANTED.length} faults, one by one`);
  const missed: string[] = [];
  for (const fault of PLANTED) missed.push(...(await missedFault(plain, client, fault)));
  say(`looking at ${HEALTHY} healthy clusters`);
  const falseBlockers: string[] = [];
  for (let seed = 1; seed <= HEALTHY; seed++)
    falseBlockers.push(...(await blockersOf(plain, client, seed)));
  say(`looking at ${NODES} nodes with ${PODS} pods`);
  const large = await measureLarge(plain, client, parts);
  say(`comparing ${ROOMS} clusters with the real scheduler`);
  const trials = await compareRooms(parts, say);
  return { missed, planted: PLANTED.length, falseBlockers, trials, large };
}

/** Creates the kinds, the namespace, and what a controller manager would create. */
async function furnish(client: KubeClient, abort: AbortSignal): Promise<void> {
  await defineKinds(client, abort);
  await client.create(namespaces, { metadata: { name: NAMESPACE } });
  for (const namespace of [NAMESPACE, 'kube-system'])
    await ifNew(
      client.create(
        namespaced('v1', 'ServiceAccount'),
        { metadata: { name: 'default' } },
        { namespace },
      ),
    );
  await ifNew(client.create(namespaces, { metadata: { name: 'kube-node-lease' } }));
}

async function reportOf(plane: ControlPlane, to = TARGET): Promise<ReadyReport> {
  let text = '';
  const words = [
    'ready',
    '--kubeconfig',
    await plane.kubeconfig('admin'),
    '--to',
    to,
    '-o',
    'json',
  ];
  const output = {
    isTerminal: false,
    hasColours: false,
    size: () => ({ columns: Number.POSITIVE_INFINITY, rows: Number.POSITIVE_INFINITY }),
    write: (part: string) => {
      text += part;
    },
  };
  await runProgram(words, COMMANDS, {
    abort: new AbortController().signal,
    write: () => undefined,
    output,
  });
  return JSON.parse(text) as ReadyReport;
}

async function missedFault(
  plane: ControlPlane,
  client: KubeClient,
  fault: PlantedFault,
): Promise<string[]> {
  const { findings } = await withObjects(
    client,
    fault.objects,
    async () => await reportOf(plane, fault.to),
  );
  const { check, state, object } = fault.expected;
  const isFound = findings.some(
    (found) =>
      found.check === check && found.state === state && found.object?.includes(object) === true,
  );
  return isFound ? [] : [fault.title];
}

async function blockersOf(
  plane: ControlPlane,
  client: KubeClient,
  seed: number,
): Promise<string[]> {
  const { findings } = await withObjects(
    client,
    healthyCluster(seed),
    async () => await reportOf(plane),
  );
  return findings
    .filter(({ state }) => state === 'blocker')
    .map(({ check, object = '', message }) => `cluster ${seed}: ${check}: ${object}: ${message}`);
}

async function measureLarge(
  plane: ControlPlane,
  client: KubeClient,
  { directory, clock, abort }: ReadyParts,
): Promise<LargeRun> {
  const nodes = Array.from({ length: NODES }, (_each, index) =>
    plantedNode(`n${index}`, { allocatable: { cpu: '32' } }),
  );
  const pods = Array.from({ length: PODS }, (_each, index) =>
    plantedPod(`p${index}`, { app: `app${index % 500}`, node: `n${index % NODES}`, cpu: '100m' }),
  );
  const folder = join(directory, 'refit-ready');
  await buildProgram(folder);
  return await withObjects(client, [...nodes, ...pods], async () => {
    const before = (await readFile(plane.auditLog ?? '', 'utf8')).length;
    const cluster = ['--kubeconfig', await plane.kubeconfig('admin')];
    const words = ['ready', ...cluster, '--to', TARGET, '-o', 'json'];
    const began = clock.monotonic();
    const child = spawn(process.execPath, [join(folder, PROGRAM), ...words], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const printed = text(child.stdout);
    const ended = once(child, 'close');
    let rssMiB = 0;
    const over = new AbortController();
    const watching = (async () => {
      for (;;) {
        const status = await readFile(`/proc/${child.pid}/status`, 'utf8').catch(() => '');
        const peak = mebibytes(status, 'VmHWM');
        if (!Number.isNaN(peak)) rssMiB = Math.max(rssMiB, peak);
        await sleep(clock, SAMPLE_MS, AbortSignal.any([abort, over.signal]));
      }
    })().catch(() => undefined);
    const [code] = (await ended) as [number | null];
    const { findings } = JSON.parse(await printed) as ReadyReport;
    const ofRoom = findings.filter(({ check }) => check === 'room');
    if (ofRoom.length === 0 || ofRoom.some(({ state }) => state === 'unknown'))
      throw new Error(`refit ready ended with ${code}, and did not judge the pods`);
    const seconds = (clock.monotonic() - began) / 1000;
    over.abort();
    await watching;
    const lines = (await readFile(plane.auditLog ?? '', 'utf8')).slice(before).split('\n');
    const verbs = lines
      .filter((line) => line.includes('refit-ready'))
      .map((line) => /"verb":"(\w+)"/.exec(line)?.[1] ?? '');
    return { seconds, rssMiB, writes: verbs.filter((verb) => !['get', 'list'].includes(verb)) };
  });
}

async function compareRooms({ abort }: ReadyParts, log: (line: string) => void): Promise<Trial[]> {
  const components = ['kube-controller-manager', 'kube-scheduler', 'kwok'] as const;
  const plane = await startControlPlane({ components, log, abort });
  try {
    using client = createClient(await loadClusterConfig({ path: await plane.kubeconfig('admin') }));
    const trials: Trial[] = [];
    for (let seed = 1; seed <= ROOMS; seed++)
      trials.push(
        ...(await tryRoom(
          { client, namespace: `room-${seed}`, abort },
          randomCluster(seed, `room-${seed}`),
        )),
      );
    return trials;
  } finally {
    await plane.stop();
  }
}
