/** Starts the cluster that the plan of the benchmark upgrades, waits until it is idle, and watches it from outside. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Cluster, startCluster } from '../../sandbox/cluster/cluster.ts';
import { controllerAddress } from '../../sandbox/cluster/hosts.ts';
import type { Plane } from '../../sandbox/cluster/plane.ts';
import type { Host } from '../../sandbox/hosts/host.ts';
import { type Plan, plans } from '../../src/api/autopilot/plan.ts';
import { LEADER_LEASE } from '../../src/dialects/autopilot/leader-lease.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { leases } from '../../src/kube/resources.ts';
import { isNotFound } from '../../src/kube/status-error.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { createInformer } from '../../src/kube/watch/informer.ts';
import { type Clock, sleep } from '../../src/util/clock.ts';
import { RefitError } from '../../src/util/errors.ts';
import { type Sighting, watchSignals } from '../../test/support/expectations/signal-watch.ts';
import { untilAtRest } from '../../test/support/processes.ts';
import { buildRefit } from '../../tools/build/refit.ts';
import type { Process } from '../../tools/controlplane/process.ts';
import { asShipped } from '../shipped.ts';
import { type Answers, askReadyz, watchAnswers } from './answers.ts';
import { Restarts } from './restarts.ts';

export const CONTROLLERS = 3;
export const WORKERS = 20;
export const SLOTS = 5;
const FROM = 'v1.36.3+k0s.0';
const TO = 'v1.36.3+k0s.2';
/** About the size of a binary of k0s, which is compressed. */
const PAYLOAD_BYTES = 60 * 1024 * 1024;
/** The same time as in the systemd unit of k0s: RestartSec=10. */
const RESTART_DELAY_MS = 10_000;
/** Several times as long as the plan takes on an idle machine. */
const PLAN_TIMEOUT_MS = 300_000;
const POLL_MS = 100;

export interface Rig {
  readonly cluster: Cluster;
  readonly controller: Process;
  readonly restarts: Restarts;
  /** The statuses that a watch has shown so far. The list grows while the plan runs. */
  readonly sightings: readonly Sighting[];
  /**
   * The answers of the API server of each controller, in the order of the controllers. Each request uses a new
   * connection.
   */
  readonly apiServers: readonly Answers[];
  /**
   * Restarts the service of the first controller without a plan. Resolves with the longest time in which its API server
   * gave no answer, in milliseconds.
   */
  restartBare(): Promise<number>;
  /**
   * Runs the plan. Resolves with the times of its creation and its completion on the monotonic clock. Throws
   * REFIT_PLAN_FAILED if the plan does not complete.
   */
  runPlan(): Promise<{ readonly createdAt: number; readonly completedAt: number }>;
}

export interface RigParts {
  readonly plane: Plane;
  /** The directory for all files of the rig. The caller removes it. */
  readonly directory: string;
  readonly clock: Clock;
  readonly abort: AbortSignal;
}

/**
 * Calls `work` with an idle cluster in which one controller of Refit leads. When the result resolves, all processes
 * have ended.
 */
export async function withRig<T>(
  { plane, directory, clock, abort }: RigParts,
  work: (rig: Rig) => Promise<T>,
) {
  await using started = new AsyncDisposableStack();
  const stop = new AbortController();
  const watching = AbortSignal.any([abort, stop.signal]);
  const restarts = new Restarts(clock, watching);
  const command = await buildRefit(join(directory, 'refit'));
  const cluster = await startCluster({
    plane,
    directory,
    controllers: CONTROLLERS,
    workers: WORKERS,
    version: FROM,
    offers: [TO],
    payloadBytes: PAYLOAD_BYTES,
    restartDelayMs: RESTART_DELAY_MS,
    onService: (host, running) => restarts.note(host, running),
    refit: asShipped(command),
  });
  started.defer(async () => await cluster.stop());
  abort.throwIfAborted();
  restarts.follow(cluster.hosts);
  const controller = await cluster.startController('refit-controller');
  const config = await loadClusterConfig({ path: await plane.kubeconfig('viewer') });
  const viewer = createClient(config);
  started.defer(() => viewer.close());
  started.defer(() => stop.abort());
  const sightings = await watchSignals(viewer, watching);
  await untilLed(cluster.client, clock, abort);
  await untilAtRest(
    [controller, ...cluster.agents.values()].map(({ pid }) => pid),
    clock,
    abort,
  );
  const authority = config.certificateAuthority;
  const ca =
    authority && ('text' in authority ? authority.text : await readFile(authority.file, 'utf8'));
  const ask = (index: number, until: AbortSignal): Answers => {
    const askHost = askReadyz({ host: controllerAddress(index + 1), port: cluster.apiPort, ca });
    return watchAnswers(async () => await askHost(until), clock, until);
  };
  const apiServers = Array.from({ length: CONTROLLERS }, (_, index) => ask(index, watching));
  const restartBare = async () =>
    await gapOfRestart(cluster.hosts[0], (until) => ask(0, until), { clock, abort: watching });
  const runPlan = async () => {
    const plan = cluster.plan({ id: 'benchmark', version: TO, concurrent: SLOTS });
    const end = await followPlans(viewer, clock, watching);
    const createdAt = clock.monotonic();
    await cluster.client.create(plans, plan);
    return { createdAt, completedAt: await end.completed };
  };
  return await work({ cluster, controller, restarts, sightings, apiServers, restartBare, runPlan });
}

async function untilLed(client: KubeClient, clock: Clock, abort: AbortSignal): Promise<void> {
  const { namespace, name } = LEADER_LEASE;
  for (;;) {
    const lease = await client.get(leases, name, { namespace, abort }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
    if (lease?.spec?.holderIdentity) return;
    await sleep(clock, POLL_MS, abort);
  }
}

async function gapOfRestart(
  host: Host | undefined,
  ask: (until: AbortSignal) => Answers,
  { clock, abort }: { clock: Clock; abort: AbortSignal },
): Promise<number> {
  if (host?.pid === undefined)
    throw new RefitError('REFIT_INTERNAL', 'the first controller does not run');
  const stop = new AbortController();
  const answers = ask(AbortSignal.any([abort, stop.signal]));
  const until = async (isSo: () => boolean): Promise<void> => {
    while (!isSo()) await sleep(clock, POLL_MS, abort);
  };
  try {
    const { starts, pid } = host;
    await until(() => answers.count() > 0);
    process.kill(pid, 'SIGTERM');
    await until(() => host.starts > starts);
    const answered = answers.count();
    await until(() => answers.count() > answered);
    return answers.longestGap();
  } finally {
    stop.abort();
  }
}

/**
 * Resolves when the watch has started. `completed` resolves with the time at which the watch shows the end of the plan.
 */
async function followPlans(client: KubeClient, clock: Clock, abort: AbortSignal) {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const look = ({ status, metadata }: Plan): void => {
    const state = status?.state;
    if (state === 'Completed') resolve(clock.monotonic());
    else if (state !== undefined && !state.startsWith('Schedulable'))
      fail(`plan ${metadata.name} ended as ${state}`);
  };
  const fail = (message: string): void => reject(new RefitError('REFIT_PLAN_FAILED', message));
  const cancel = clock.schedule(PLAN_TIMEOUT_MS, () =>
    fail(`the plan took more than ${PLAN_TIMEOUT_MS / 1000} s`),
  );
  abort.addEventListener('abort', () => fail('interrupted'), { once: true });
  const informer = createInformer(client, plans, { clock });
  informer.addHandler({ added: look, updated: look });
  void informer.run(abort);
  await informer.whenSynced(abort);
  const completed = promise.finally(cancel);
  // If the caller fails before the end of the plan, nothing waits for `completed`. A rejection of `completed` must then
  // not end the process.
  completed.catch(() => undefined);
  return { completed };
}
