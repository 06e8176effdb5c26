/** Starts etcd and kube-apiserver, and chooses their addresses. */
import { systemClock } from '../../src/util/clock.ts';
import { apiServerArguments, etcdArguments, type Layout } from './arguments.ts';
import { freePort } from './ports.ts';
import type { Probe } from './probe.ts';
import { type Process, startProcess } from './process.ts';

export async function chooseLayout(directory: string): Promise<Layout> {
  return {
    directory,
    etcdUrl: `http://127.0.0.1:${await freePort()}`,
    etcdPeerUrl: `http://127.0.0.1:${await freePort()}`,
    apiServerPort: await freePort(),
  };
}

export interface ServerOptions {
  /** Path of the binary. */
  readonly command: string;
  readonly layout: Layout;
  readonly probe: Probe;
  readonly environment?: Readonly<Record<string, string>> | undefined;
  readonly abort?: AbortSignal | undefined;
}

export async function startEtcd({
  command,
  layout,
  probe,
  environment,
  abort,
}: ServerOptions): Promise<Process> {
  return await startProcess({
    name: 'etcd',
    command,
    args: etcdArguments(layout),
    environment,
    directory: layout.directory,
    ready: async () => await probe(`${layout.etcdUrl}/health`),
    clock: systemClock,
    abort,
  });
}

/** Starts kube-apiserver. With `auditLog`, the server writes one line to that file for each request. */
export async function startApiServer(
  { command, layout, probe, environment, abort }: ServerOptions,
  auditLog: string | undefined,
): Promise<Process> {
  return await startProcess({
    name: 'kube-apiserver',
    command,
    args: apiServerArguments(layout, auditLog),
    environment,
    directory: layout.directory,
    ready: async () => await probe(`https://127.0.0.1:${layout.apiServerPort}/readyz`),
    clock: systemClock,
    abort,
  });
}
