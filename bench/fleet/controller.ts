/** Starts the controller of Refit as it is shipped, in its own process, for a fleet. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { LEADER_LEASE } from '../../src/dialects/autopilot/leader-lease.ts';
import { leases } from '../../src/kube/resources.ts';
import { isNotFound } from '../../src/kube/status-error.ts';
import type { Clock } from '../../src/util/clock.ts';
import { buildRefit } from '../../tools/build/refit.ts';
import { type Process, startProcess } from '../../tools/controlplane/process.ts';
import type { Fleet } from './fleet.ts';

/** Resolves when the controller leads. `directory` contains its log, and the caller removes the directory. */
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

/** Returns a kubeconfig for a user without credentials, because the API server in memory requires none. */
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
