/** The controller of Refit as it ships, in a process of its own, beside a fleet. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { LEADER_LEASE } from '../../src/dialects/registry.ts';
import { leases } from '../../src/kube/resources.ts';
import { isNotFound } from '../../src/kube/status-error.ts';
import type { Clock } from '../../src/util/clock.ts';
import { buildRefit } from '../../tools/build/refit.ts';
import { type Process, startProcess } from '../../tools/controlplane/process.ts';
import type { Fleet } from './fleet.ts';

/** Resolves once it leads; `directory` holds its log, and is removed by the caller. */
export async function startController(
  fleet: Fleet,
  directory: string,
  clock: Clock,
  abort: AbortSignal,
): Promise<Process> {
  for (const folder of ['logs', 'pids']) await mkdir(join(directory, folder), { recursive: true });
  const kubeconfig = join(directory, 'kubeconfig.json');
  await writeFile(kubeconfig, JSON.stringify(kubeconfigFor(fleet.server.url)));
  const command = await buildRefit(join(directory, 'refit'));
  return await startProcess({
    name: 'controller',
    command: process.execPath,
    args: [command, 'controller', '--kubeconfig', kubeconfig],
    directory,
    ready: async () => await isLed(fleet),
    clock,
    abort,
  });
}

/** Of a user without credentials: the API server in memory asks for none. */
export function kubeconfigFor(url: string): object {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'fleet',
    clusters: [{ name: 'fleet', cluster: { server: url } }],
    users: [{ name: 'anybody', user: {} }],
    contexts: [{ name: 'fleet', context: { cluster: 'fleet', user: 'anybody' } }],
  };
}

async function isLed({ client }: Fleet): Promise<boolean> {
  const { namespace, name } = LEADER_LEASE;
  const lease = await client.get(leases, name, { namespace }).catch((error: unknown) => {
    if (!isNotFound(error)) throw error;
  });
  return Boolean(lease?.spec?.holderIdentity);
}
