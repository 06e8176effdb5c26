/** The hosts of a stand-in cluster, and the objects that register them with the API server. */
import { join } from 'node:path';
import type { KubeClient } from '../../src/kube/client.ts';
import { type Host, type HostOptions, startHost } from '../hosts/host.ts';
import { createControlNode, createNode, createPlayedNode } from './objects.ts';

export interface HostsOptions {
  readonly client: KubeClient;
  /** Each host gets a directory of its name below. */
  readonly directory: string;
  readonly controllers: readonly string[];
  readonly workers: readonly string[];
  readonly workerLabels: Readonly<Record<string, string>>;
  /** More arguments of the controllers' services: with `--enable-worker` or `--single` they get Nodes, too. */
  readonly controllerFlags?: readonly string[] | undefined;
  /** True where kwok is to play pods on the Nodes. */
  readonly played?: boolean | undefined;
  readonly version: string;
  /** Milliseconds between the end of a service and its next start. */
  readonly restartDelayMs: number;
  /** `host:port` of the API server that all controllers stand in front of, and the port they do that on. */
  readonly upstream: string;
  readonly apiPort: number;
  /** Hears of every start and end of a host's service. */
  readonly onService?: ((host: string, running: boolean) => void) | undefined;
}

/** Loopback address of the n-th controller (from 1): the certificates of a real control plane must name them. */
export function controllerAddress(index: number): string {
  return `127.0.0.${10 + index}`;
}

/** In the order of the names; where one fails, those that were started are ended again. */
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
        // All hosts share the name of this machine, which a kubelet would register under.
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
