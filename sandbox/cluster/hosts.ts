/** The hosts of a stand-in cluster, and the objects that register them with the API server. */
import { join } from 'node:path';
import type { KubeClient } from '../../src/kube/client.ts';
import { type Host, type HostOptions, startHost } from '../hosts/host.ts';
import { createControlNode, createNode, createPlayedNode } from './objects.ts';

export interface HostsOptions {
  readonly client: KubeClient;
  /** Each host gets a subdirectory with its name. */
  readonly directory: string;
  readonly controllers: readonly string[];
  readonly workers: readonly string[];
  readonly workerLabels: Readonly<Record<string, string>>;
  /**
   * Additional arguments of the services on controllers. With `--enable-worker` or `--single`, controllers have Nodes,
   * too.
   */
  readonly controllerFlags?: readonly string[] | undefined;
  /** True if kwok simulates pods on the Nodes. */
  readonly played?: boolean | undefined;
  readonly version: string;
  /** Milliseconds between the end of a service and its next start. */
  readonly restartDelayMs: number;
  /**
   * `upstream` is the `host:port` of the API server to which all controllers forward. `apiPort` is the port at which
   * the controllers listen.
   */
  readonly upstream: string;
  readonly apiPort: number;
  /** Called for every start and end of a host's service. */
  readonly onService?: ((host: string, running: boolean) => void) | undefined;
}

/**
 * Returns the loopback address of the n-th controller (from 1). The certificates of a real control plane must contain
 * these addresses.
 */
export function controllerAddress(index: number): string {
  return `127.0.0.${10 + index}`;
}

/** Returns the hosts in the order of the names. If one host fails to start, stops all hosts that have started. */
export async function startHosts(options: HostsOptions): Promise<Host[]> {
  const {
    client,
    controllers,
    workers,
    workerLabels,
    controllerFlags = [],
    played,
    upstream,
    apiPort,
  } = options;
  const register = played === true ? createPlayedNode : createNode;
  const starting = [
    ...controllers.map(async (name, index) => {
      const address = controllerAddress(index + 1);
      const host = await start(options, {
        name,
        role: 'controller',
        // All hosts share the name of this machine. Without the flag, a kubelet would register with that name.
        flags: [...controllerFlags, `--kubelet-extra-args=--hostname-override=${name}`],
        apiServer: { listen: `${address}:${apiPort}`, upstream },
      });
      await createControlNode(
        client,
        name,
        address,
        host.runsPods ? 'controller+worker' : 'controller',
      );
      if (host.runsPods) await register(client, name, {}, options.version);
      return host;
    }),
    ...workers.map(async (name) => {
      const host = await start(options, { name, role: 'worker' });
      await register(client, name, workerLabels, options.version);
      return host;
    }),
  ];
  const results = await Promise.allSettled(starting);
  if (results.every((result) => result.status === 'fulfilled'))
    return results.map(({ value }) => value);
  await Promise.all(
    results.map(async (result) => result.status === 'fulfilled' && (await result.value.stop())),
  );
  return await Promise.all(starting);
}

async function start(
  options: HostsOptions,
  own: Pick<HostOptions, 'name' | 'role' | 'flags' | 'apiServer'>,
): Promise<Host> {
  const { directory, version, restartDelayMs, onService } = options;
  return await startHost({
    ...own,
    directory: join(directory, own.name),
    version,
    restartDelayMs,
    ...(onService ? { onService: (running) => onService(own.name, running) } : {}),
  });
}
