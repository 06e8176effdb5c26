/** A whole stand-in cluster on one machine: hosts with agents, a download server, and controllers of Refit. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Plan } from '../../src/api/autopilot/plan.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { systemClock } from '../../src/util/clock.ts';
import type { User } from '../../tools/controlplane/kubeconfig.ts';
import { freePort } from '../../tools/controlplane/ports.ts';
import type { Process } from '../../tools/controlplane/process.ts';
import type { DownloadServer } from '../hosts/download-server.ts';
import { agentArguments, type Host } from '../hosts/host.ts';
import { REFIT } from '../refit.ts';
import { startHosts } from './hosts.ts';
import { keepReady } from './kubelet.ts';
import { deleteObjects, examplePlan, installDefinitions } from './objects.ts';
import type { Plane } from './plane.ts';
import { type RefitCommands, RefitProcesses, refitCommands } from './refit-processes.ts';
import { payloadPath, type ServedVersions, serveVersions } from './served-versions.ts';

export interface ClusterOptions extends ServedVersions {
  readonly plane: Pick<Plane, 'url' | 'kubeconfig'>;
  /** Holds all files of the hosts; the caller removes it. */
  readonly directory: string;
  readonly controllers: number;
  readonly workers: number;
  /** Prefix of every host name: `controller1` and so on. */
  readonly prefix?: string;
  /** The version that all hosts run at first. */
  readonly version: string;
  /** The port of the API servers at the addresses of the controllers. By default it is a free port. */
  readonly apiPort?: number;
  /** Milliseconds between the end of a service and its next start. */
  readonly restartDelayMs: number;
  /**
   * Additional arguments of the services on controllers. With `--enable-worker` or `--single`, controllers have Nodes,
   * too.
   */
  readonly serviceFlags?: readonly string[];
  /** More arguments of the agents. */
  readonly agentFlags?: readonly string[];
  /** True if kwok simulates pods on the Nodes. */
  readonly played?: boolean;
  /** Hosts with an agent of Refit; all by default. */
  readonly agents?: readonly string[];
  /** Variables of the controllers and agents, in addition to PATH and HOME. */
  readonly environment?: Readonly<Record<string, string>>;
  /** The version whose kubelet does not start. Use it only with simulated Nodes. */
  readonly mute?: string;
  /** Called for every start and end of a host's service. */
  readonly onService?: (host: string, running: boolean) => void;
  /** The file that Node runs as `refit`; `REFIT` by default. */
  readonly refit?: Refit;
}

/** The arguments of Node.js for each long-running subcommand: its flags, then the file of the command. */
export interface Refit {
  readonly agent: readonly string[];
  readonly controller: readonly string[];
  /** Variables of the agents, in addition to PATH and HOME. */
  readonly agentEnvironment?: Readonly<Record<string, string>>;
}

export interface Cluster extends RefitCommands {
  /** The directory of the cluster. The logs of its processes are in the folder `logs`. */
  readonly directory: string;
  readonly hosts: readonly Host[];
  readonly downloads: DownloadServer;
  /** As administrator. */
  readonly client: KubeClient;
  /** The port of the API servers at the addresses of the controllers. */
  readonly apiPort: number;
  /** The processes of the agents, by the name of the host. */
  readonly agents: ReadonlyMap<string, Process>;
  /**
   * Returns a Plan of the documented shape: it names all controllers, and selects all workers by a label. The Plan is
   * not applied.
   */
  plan(wanted: {
    readonly id: string;
    readonly version: string;
    readonly concurrent: number;
  }): Plan;
  startAgent(host: Host): Promise<void>;
  stop(): Promise<void>;
}

/** Resolves when every host runs its first version and every agent is started. No controller of Refit runs yet. */
export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  await using started = new AsyncDisposableStack();
  const { plane, directory, refit = { agent: [REFIT], controller: [REFIT] } } = options;
  for (const folder of ['logs', 'pids']) await mkdir(join(directory, folder), { recursive: true });
  const client = createClient(await loadClusterConfig({ path: await plane.kubeconfig('admin') }));
  started.defer(() => client.close());
  await installDefinitions(client, systemClock);
  const downloads = await serveVersions(options);
  started.defer(async () => await downloads.stop());

  const named = (count: number, role: string): string[] =>
    Array.from({ length: count }, (_, index) => `${options.prefix ?? ''}${role}${index + 1}`);
  const controllers = named(options.controllers, 'controller');
  const workers = named(options.workers, 'worker');
  const apiPort = options.apiPort ?? (await freePort());
  const hosts = await startHosts({
    client,
    directory: join(directory, 'hosts'),
    controllers,
    workers,
    workerLabels: { pool: 'blue' },
    controllerFlags: options.serviceFlags,
    played: options.played,
    version: options.version,
    restartDelayMs: options.restartDelayMs,
    upstream: new URL(plane.url).host,
    apiPort,
    onService: options.onService,
  });
  // The objects are deleted after the agents have stopped, because a running agent would write some of them again.
  started.defer(async () => {
    await Promise.all(hosts.map(async ({ name }) => await deleteObjects(client, name)));
  });
  started.defer(async () => void (await Promise.all(hosts.map(async (host) => await host.stop()))));
  started.use(
    keepReady(
      client,
      hosts.filter(({ runsPods }) => runsPods),
      { mute: options.mute },
    ),
  );

  const processes = new RefitProcesses(directory);
  started.defer(async () => await processes.stop());
  const agents = new Map<string, Process>();
  const startAgent = async (host: Host): Promise<void> => {
    const args = [...refit.agent, 'agent', ...(await argumentsOn(host, options))];
    const environment = environmentOn(host, options);
    agents.set(host.name, await processes.start(`agent-${host.name}`, args, environment));
  };
  await Promise.all(
    hosts.filter(({ name }) => options.agents?.includes(name) ?? true).map(startAgent),
  );
  const everything = started.move();
  return {
    directory,
    hosts,
    downloads,
    client,
    apiPort,
    agents,
    plan: (wanted) =>
      examplePlan({
        ...wanted,
        url: `${downloads.url}${payloadPath(wanted.version)}`,
        sha256: downloads.sha256(payloadPath(wanted.version)),
        controllers,
        workerSelector: { labels: 'pool=blue' },
      }),
    startAgent,
    ...refitCommands(processes, {
      program: refit.controller,
      kubeconfig: async () => await plane.kubeconfig('controller'),
      apiPort,
      environment: options.environment,
    }),
    stop: async () => await everything.disposeAsync(),
  };
}

/** Returns the flags of the agent on a host. */
async function argumentsOn(host: Host, { plane, agentFlags = [] }: ClusterOptions) {
  const kubeconfig = await plane.kubeconfig(userOn(host));
  return [...agentArguments(host, kubeconfig), ...agentFlags];
}

/**
 * Returns the environment of an agent. The hosts share this machine, so each agent changes files for Cluster API only
 * below the root of its host.
 */
function environmentOn(
  { directory }: Host,
  { refit, environment }: ClusterOptions,
): ClusterOptions['environment'] {
  return { ...refit?.agentEnvironment, ...environment, REFIT_ROOT: join(directory, 'root') };
}

/** The user of the agent on a host. */
function userOn({ name, role, runsPods }: Host): User {
  if (role === 'worker') return { node: name };
  return runsPods ? { controlNode: name, node: name } : { controlNode: name };
}
