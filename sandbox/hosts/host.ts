/** A stand-in host: a directory with a service in it, and the supervisor that keeps the service running. */
import { mkdir, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import type { Broken } from './stand-in.ts';
import { buildStandIn } from './stand-in.ts';
import { Supervisor } from './supervisor.ts';

export interface HostOptions {
  readonly name: string;
  readonly role: 'controller' | 'worker';
  /**
   * The directory of all files of the host. Its path must be short, because the path of a unix socket has at most 107
   * bytes.
   */
  readonly directory: string;
  /** Version that is installed at first. */
  readonly version: string;
  /** Additional arguments of the service. With `--enable-worker` or `--single`, pods also run on a controller. */
  readonly flags?: readonly string[];
  readonly broken?: Broken;
  /**
   * True if k0s's own agent is on. This is decided by the command line on a controller, and by the profile on a worker.
   * If absent, the agent is off, as the guide recommends.
   */
  readonly ownAgent?: boolean;
  /** Milliseconds between the end of a service and its next start; 100 if absent. */
  readonly restartDelayMs?: number;
  /**
   * Only for controllers, as `address:port`: the address at which the host's own API server listens, and the API server
   * to which it forwards everything.
   */
  readonly apiServer?: { readonly listen: string; readonly upstream: string };
  /** Called for every start and end of the service's process. */
  readonly onService?: (running: boolean) => void;
}

export interface Host {
  readonly name: string;
  readonly role: 'controller' | 'worker';
  /** True if the host has a Node. */
  readonly runsPods: boolean;
  readonly directory: string;
  readonly binary: string;
  readonly statusSocket: string;
  readonly stateDirectory: string;
  /** The data directory. Airgap bundles belong in its folder `images`. */
  readonly dataDirectory: string;
  /** The PID of the service; undefined while the service does not run. */
  readonly pid: number | undefined;
  /** The number of times that the service was started. */
  readonly starts: number;
  /** Returns the version that the running service reports; rejects if the service does not answer. */
  version(): Promise<string>;
  /** Kills the service at once, as a power cut does. The service does not start again. */
  powerOff(): Promise<void>;
  /** Stops the service until it is resumed. The files of the service stay. */
  stop(): Promise<void>;
  /** Starts a service that was stopped; resolves once its status socket answers. */
  resume(): Promise<void>;
}

/** Installs the version and starts the service; resolves once its status socket answers, unless it is broken. */
export async function startHost(options: HostOptions): Promise<Host> {
  const {
    name,
    role,
    directory,
    version,
    flags = [],
    broken,
    apiServer,
    onService,
    restartDelayMs = 100,
  } = options;
  const binary = join(directory, 'bin', 'k0s');
  const statusSocket = join(directory, 'run', 'status.sock');
  const stateDirectory = join(directory, 'state');
  await buildStandIn({ version, path: binary, ...(broken && { broken }) });
  const dataDirectory = join(directory, 'data');
  for (const path of [join(directory, 'run'), stateDirectory, dataDirectory])
    await mkdir(path, { recursive: true });
  const api =
    apiServer === undefined ? [] : ['--listen', apiServer.listen, '--upstream', apiServer.upstream];
  const own =
    role === 'controller' && options.ownAgent !== true ? ['--disable-components=autopilot'] : [];
  const command = [binary, role, '--status-socket', statusSocket, ...own, ...flags, ...api];
  if (role === 'worker') await writeWorkerProfile(dataDirectory, options.ownAgent === true);
  const supervisor = new Supervisor(command, restartDelayMs, onService);
  if (broken === undefined) await firstAnswer(supervisor, statusSocket);
  return {
    name,
    role,
    runsPods: role === 'worker' || flags.includes('--enable-worker') || flags.includes('--single'),
    directory,
    binary,
    statusSocket,
    stateDirectory,
    dataDirectory,
    get pid() {
      return supervisor.pid;
    },
    get starts() {
      return supervisor.starts;
    },
    version: async () => await askVersion(statusSocket),
    powerOff: async () => await supervisor.stop('SIGKILL'),
    stop: async () => await supervisor.stop('SIGTERM'),
    resume: async () => {
      supervisor.resume();
      await firstAnswer(supervisor, statusSocket);
    },
  };
}

/** Writes the file in which k0s stores the worker profile of its start. */
export async function writeWorkerProfile(dataDirectory: string, ownAgent: boolean): Promise<void> {
  const data = {
    konnectivity: '{"agentPort":8132}',
    nodeLocalLoadBalancing: '{"enabled":false,"type":"EnvoyProxy"}',
    ...(!ownAgent && { autopilotDisabled: 'true' }),
  };
  // JSON is YAML, too.
  const text = JSON.stringify({ name: 'default', data });
  await mkdir(dataDirectory, { recursive: true });
  await writeFile(join(dataDirectory, 'worker-profile.yaml'), text);
}

/**
 * Returns the command line of `refit agent` for a host. It names the binary, because the process of a script does not
 * reveal its file. With `--soak 0` the agent watches a new process only until its first answer, because stand-ins
 * usually fail at once or never.
 */
export function agentArguments(host: Host, kubeconfig: string): string[] {
  const object = host.role === 'controller' ? 'controlnode' : 'node';
  const cluster = ['--name', host.name, '--object', object, '--kubeconfig', kubeconfig];
  const service = [
    '--status-socket',
    host.statusSocket,
    '--binary',
    host.binary,
    '--state-dir',
    host.stateDirectory,
  ];
  const run = join(host.directory, 'run');
  return [
    ...cluster,
    ...service,
    '--data-dir',
    host.dataDirectory,
    '--run-dir',
    run,
    '--soak',
    '0',
  ];
}

const ANSWER_WITHIN_MS = 30_000;
const ASK_EVERY_MS = 25;

async function firstAnswer(supervisor: Supervisor, statusSocket: string): Promise<void> {
  const deadline = performance.now() + ANSWER_WITHIN_MS;
  for (;;) {
    try {
      await askVersion(statusSocket);
      return;
    } catch (error) {
      if (performance.now() < deadline) {
        await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS));
        continue;
      }
      await supervisor.stop('SIGKILL');
      throw new Error(`the stand-in's status socket ${statusSocket} does not answer`, {
        cause: error,
      });
    }
  }
}

async function askVersion(socketPath: string): Promise<string> {
  const text = await new Promise<string>((resolve, reject) => {
    const abort = AbortSignal.timeout(1_000);
    const outgoing = request(
      { socketPath, path: '/status', agent: false, signal: abort },
      (response) => {
        response.setEncoding('utf8');
        response.once('error', reject);
        let body = '';
        response
          .on('data', (chunk: string) => {
            body += chunk;
          })
          .once('end', () => resolve(body));
      },
    );
    outgoing.once('error', reject).end();
  });
  return (JSON.parse(text) as { Version: string }).Version;
}
