/**
 * Starts the management cluster: a real API server on loopback, Cluster API's managers, and one extension of Refit for
 * all clusters.
 */

import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { applyManifest } from '../../../../tools/controlplane/apply.ts';
import { startControlPlane } from '../../../../tools/controlplane/control-plane.ts';
import { must } from '../../../../tools/release/commands.ts';
import { listOf, NAMESPACE } from '../../capi/machines/objects.ts';
import { applyDefinitions } from '../../capi/managers/definitions.ts';
import { Managers } from '../../capi/managers/managers.ts';
import type { Program } from '../../capi/managers/programs.ts';
import { authoritySecret, extensionConfig } from '../../capi/parts/registration.ts';
import { NETWORK } from '../../machines/machine.ts';
import { MIRROR } from '../agents/agent.ts';
import { extensionFor, runExtension } from '../agents/extension.ts';

export interface ManagementOptions {
  readonly directory: string;
  readonly programs: readonly Program[];
  /** The built command. */
  readonly refit: string;
  readonly log: (line: string) => void;
}

export interface Management {
  /** An administrator's kubeconfig. */
  readonly kubeconfig: string;
  apply(...objects: readonly object[]): Promise<void>;
  /** Returns what the extension has written to standard error so far. */
  said(): string;
}

/** Starts the management cluster. Everything that this function starts is stopped when `started` is disposed. */
export async function startManagement(
  { directory, programs, refit, log }: ManagementOptions,
  started: AsyncDisposableStack,
): Promise<Management> {
  const abort = new AbortController().signal;
  for (const folder of ['logs', 'pids', 'updater-certs'])
    await mkdir(join(directory, folder), { recursive: true });
  // An API server does not start without a default route.
  await must('ip', ['route', 'add', 'default', 'via', `${NETWORK}.254`, 'dev', 'machines']);
  const plane = await startControlPlane({ log, abort });
  started.defer(async () => await plane.stop());
  const kubeconfig = await plane.kubeconfig('admin');
  const apply = async (...objects: readonly object[]) =>
    await applyManifest(kubeconfig, listOf(objects));
  await apply(
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'capi-system' } },
    {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: NAMESPACE, labels: { 'in-place': 'yes' } },
    },
  );
  for (const file of ['rbac-capi-clusters.yaml', 'crds/upgrade.refit.dev_updatersets.yaml'])
    await applyManifest(kubeconfig, await readFile(join('deploy', file), 'utf8'));
  const extension = await extensionFor(directory, await plane.kubeconfig('capi'));

  // provider.ts does the work of the infrastructure provider.
  const isReal = ({ name }: Program): boolean => name !== 'infrastructure';
  for (const program of programs) if (!isReal(program)) await applyDefinitions(kubeconfig, program);
  const real = programs.filter(isReal);
  const managers = new Managers({
    programs: real,
    directory,
    kubeconfig,
    client: extension.client,
    abort,
  });
  started.defer(async () => await managers.stop());
  await managers.open();

  const list = `${MIRROR}/{version}/SHA256SUMS`;
  const source = ['--workload-clusters', '--payload-url', list, '--checksum-url', `${list}.sha256`];
  const running = runExtension(refit, [...extension.commandLine, ...source]);
  started.defer(async () => await running.stop());
  await apply(authoritySecret(extension.authority), extensionConfig(extension.url));
  return { kubeconfig, apply, said: () => running.said() };
}
