/** Owns a whole stand-in cluster on one machine: hosts with their agents, a download server, and controllers of Refit. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { plans } from '../../src/api/autopilot/plan.ts';
import { type DownloadServer, startDownloadServer } from '../../src/embedded/hosts/download-server.ts';
import { agentArguments, type Host, startHost } from '../../src/embedded/hosts/host.ts';
import { buildStandIn } from '../../src/embedded/hosts/stand-in.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { createClient } from '../../src/kube/http-client.ts';
import { loadClusterConfig } from '../../src/kube/kubeconfig.ts';
import { systemClock } from '../../src/util/clock.ts';
import { freePort } from '../controlplane/ports.ts';
import { type Process, startProcess } from '../controlplane/process.ts';
import { keepReady } from './kubelet.ts';
import { createControlNode, createNode, examplePlan, installDefinitions } from './objects.ts';
import type { Plane } from './plane.ts';

export interface ClusterOptions {
  readonly plane: Plane;
  /** Everything of the hosts is kept below; the caller removes it. */
  readonly directory: string;
  readonly controllers: number;
  readonly workers: number;
  /** Version installed at first, and the version that the download server has. */
  readonly from: string;
  readonly to: string;
  /** Milliseconds between the end of a service and its next start. */
  readonly restartDelayMs: number;
  /** Nodes that get damaged bytes. */
  readonly breakFor?: readonly string[];
  /** Put before the names of nodes, where several clusters share an API server. */
  readonly prefix?: string;
}

export interface Cluster {
  readonly plane: Plane;
  readonly hosts: readonly Host[];
  readonly downloads: DownloadServer;
  /** As administrator. */
  readonly client: KubeClient;
  /** Port of the API servers on the controllers' own addresses. */
  readonly apiPort: number;
  readonly agents: ReadonlyMap<string, Process>;
  startAgent(host: Host): Promise<void>;
  startController(name: string, args?: readonly string[]): Promise<Process>;
  /** Applies the example Plan: controllers by name, all workers by label. */
  applyPlan(id: string, concurrent: number): Promise<void>;
  stop(): Promise<void>;
}

export const PAYLOAD_PATH = '/k0s';
export const WORKER_LABELS = { pool: 'blue' };
const REFIT = join(import.meta.dirname, '..', '..', 'src', 'cmd', 'refit.ts');
const PLAN_TIMES = { leaseDuration: '3s' };

/** Loopback address of the n-th controller (from 1): the certificates of a real control plane must name them. */
export function controllerAddress(index: number): string {
  return `127.0.0.${10 + index}`;
}

/** Resolves when every host runs `from`, every agent is started and every Node is Ready. No controller runs yet. */
export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  await using started = new AsyncDisposableStack();
  const { plane, directory, prefix = '' } = options;
  for (const folder of ['logs', 'pids', 'hosts']) await mkdir(join(directory, folder), { recursive: true });
  const client = createClient(await loadClusterConfig({ path: await plane.kubeconfig('admin') }));
  started.defer(() => client.close());
  await installDefinitions(client, systemClock);

  const payload = join(directory, 'payload');
  await buildStandIn({ version: options.to, path: payload });
  const downloads = await startDownloadServer({
    files: { [PAYLOAD_PATH]: payload },
    ...(options.breakFor ? { breakFor: options.breakFor } : {}),
  });
  started.defer(async () => await downloads.stop());

  const apiPort = await freePort();
  const hosts: Host[] = [];
  started.defer(async () => void (await Promise.all(hosts.map(async (host) => await host.stop()))));
  const agents = new Map<string, Process>();
  started.defer(async () => void (await Promise.all([...agents.values()].map(async (agent) => await agent.stop()))));
  await startControllers(options, client, apiPort, hosts);
  await startWorkers(options, client, hosts);
  started.use(
    keepReady(
      client,
      hosts.filter(({ role }) => role === 'worker'),
    ),
  );

  const run = async (name: string, args: readonly string[]): Promise<Process> =>
    await startProcess({
      name,
      command: process.execPath,
      args: [REFIT, ...args],
      directory,
      ready: () => Promise.resolve(true),
      clock: systemClock,
    });
  const startAgent = async (host: Host): Promise<void> => {
    const user = host.role === 'controller' ? { controlNode: host.name } : { node: host.name };
    const args = ['agent', ...agentArguments(host, await plane.kubeconfig(user))];
    agents.set(host.name, await run(`agent-${host.name}`, args));
  };
  await Promise.all(hosts.map(startAgent));

  const everything = started.move();
  return {
    plane,
    hosts: hosts.toSorted((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true })),
    downloads,
    client,
    apiPort,
    agents,
    startAgent,
    async startController(name, args = []) {
      const kubeconfig = await plane.kubeconfig('controller');
      const times = ['--lease-duration', PLAN_TIMES.leaseDuration];
      const controller = await run(name, [
        'controller',
        '--kubeconfig',
        kubeconfig,
        '--api-port',
        String(apiPort),
        ...times,
        ...args,
      ]);
      everything.defer(async () => await controller.stop());
      return controller;
    },
    async applyPlan(id, concurrent) {
      const plan = examplePlan({
        id,
        version: options.to,
        url: `${downloads.url}${PAYLOAD_PATH}`,
        sha256: downloads.sha256(PAYLOAD_PATH),
        controllers: Array.from({ length: options.controllers }, (_, index) => `${prefix}controller${index + 1}`),
        workerSelector: { labels: `pool=${prefix}${WORKER_LABELS.pool}` },
        concurrent,
      });
      await client.create(plans, plan);
    },
    stop: async () => await everything.disposeAsync(),
  };
}

async function startControllers(
  options: ClusterOptions,
  client: KubeClient,
  apiPort: number,
  hosts: Host[],
): Promise<void> {
  const { plane, directory, controllers, from, restartDelayMs, prefix = '' } = options;
  const upstream = new URL(plane.url).host;
  await Promise.all(
    Array.from({ length: controllers }, async (_, index) => {
      const name = `${prefix}controller${index + 1}`;
      const address = controllerAddress(index + 1);
      const apiServer = { listen: `${address}:${apiPort}`, upstream };
      hosts.push(
        await startHost({
          name,
          role: 'controller',
          directory: join(directory, 'hosts', name),
          version: from,
          restartDelayMs,
          apiServer,
        }),
      );
      await createControlNode(client, name, address);
    }),
  );
}

async function startWorkers(options: ClusterOptions, client: KubeClient, hosts: Host[]): Promise<void> {
  const { directory, workers, from, restartDelayMs, prefix = '' } = options;
  await Promise.all(
    Array.from({ length: workers }, async (_, index) => {
      const name = `${prefix}worker${index + 1}`;
      hosts.push(
        await startHost({
          name,
          role: 'worker',
          directory: join(directory, 'hosts', name),
          version: from,
          restartDelayMs,
        }),
      );
      await createNode(client, name, { pool: `${prefix}${WORKER_LABELS.pool}` });
    }),
  );
}
