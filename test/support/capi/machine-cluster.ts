/** Machines with Nodes and agents on the real API server, and the extension with its documented rights. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import type { Cluster } from '../../../sandbox/cluster/cluster.ts';
import {
  type CallerOptions,
  callHook,
  type Protocol,
} from '../../../sandbox/cluster/hook-caller.ts';
import { type Extension, prepareExtension } from '../../../sandbox/cluster/hook-extension.ts';
import {
  askWhatIsLeft,
  driveUpdate,
  type ManagerOptions,
  writeDesired,
} from '../../../sandbox/cluster/machine-manager.ts';
import {
  createMachine,
  installMachines,
  joinNode,
  MACHINE_KINDS,
} from '../../../sandbox/cluster/machines.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { customResourceDefinitions, nodes } from '../../../src/kube/resources.ts';
import { heedsSwitch } from '../../../src/signal/own-agent.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { KUBERNETES_VERSION } from '../../../tools/controlplane/components.ts';
import type { Process } from '../../../tools/controlplane/process.ts';
import { kubeconfigFor } from '../../testenv/control-plane.ts';
import { startOwnCluster } from '../../testenv/own-cluster.ts';

/** The Machines have versions of the minor version of the API server, because no kubelet may be newer than that. */
const MINOR = KUBERNETES_VERSION.split('.', 2).join('.');
export const FROM = `${MINOR}.1`;
export const TO = `${MINOR}.2`;
export const AFTER = `${MINOR}.3`;

/** A worker with an earlier k0s always runs the agent of k0s, and Refit's agent stands aside without this option. */
export const FLAGS_BESIDE_K0S = heedsSwitch(`${FROM}+k0s.0`) ? [] : ['--beside-k0s', 'replace'];

export interface MachineClusterOptions {
  /** The number of Nodes. They are called worker1, worker2, …, and each has a Machine. */
  readonly workers: number;
  /** The name of the Node whose Machine belongs to the control plane. */
  readonly controlPlane?: string;
  readonly agentFlags?: readonly string[];
  /** True if pods run on the Nodes. */
  readonly played?: boolean;
  /** The kubeconfig of the extension; if absent, the kubeconfig of the documented user. */
  readonly kubeconfig?: string;
}

export interface MachineCluster extends AsyncDisposable {
  readonly cluster: Cluster;
  readonly directory: string;
  readonly extension: Extension;
  /** The process that runs now. A test that starts another process assigns it here. */
  running: Process;
  /** Returns the options for calls like those of Cluster API. */
  manager(protocol: Protocol, onCall?: ManagerOptions['onCall']): ManagerOptions;
  whenCallable(protocol: Protocol): Promise<void>;
  /** Updates the Machine of a Node, from the first call of a hook to the last answer. */
  update(node: string, options: ManagerOptions): Promise<void>;
}

export function machineOf(node: string): string {
  return `machine-of-${node}`;
}

export async function uninstallMachines(client: KubeClient): Promise<void> {
  for (const { plural, group } of MACHINE_KINDS)
    await client.delete(customResourceDefinitions, `${plural}.${group}`);
}

/** Returns the log of the extension. If nobody can call the extension, the end of the log may show the cause. */
async function logOf({ directory }: Cluster): Promise<string> {
  const logs = (await readdir(join(directory, 'logs'))).filter((name) =>
    name.startsWith('extension'),
  );
  return (
    await Promise.all(
      logs.map(async (name) => await readFile(join(directory, 'logs', name), 'utf8')),
    )
  ).join('');
}

export async function openMachineCluster(options: MachineClusterOptions): Promise<MachineCluster> {
  const cluster = await startOwnCluster({
    controllers: 0,
    workers: options.workers,
    version: FROM,
    offers: [TO],
    restartDelayMs: 300,
    ...(options.played === undefined ? {} : { played: options.played }),
    agentFlags: [...FLAGS_BESIDE_K0S, ...(options.agentFlags ?? [])],
  });
  const { client } = cluster;
  await installMachines(client, systemClock);
  for (const { name: node } of cluster.hosts) {
    const controlPlane = node === options.controlPlane;
    const machine = { name: machineOf(node), version: FROM, node, controlPlane };
    await joinNode(client, machine);
    await createMachine(client, machine);
  }
  const extension = await prepareExtension({
    cluster,
    directory: cluster.directory,
    kubeconfig: options.kubeconfig ?? (await kubeconfigFor('capi')),
  });
  const callerOf = (protocol: Protocol): CallerOptions => ({
    url: extension.url,
    authority: extension.authority,
    client: extension.client,
    protocol,
  });
  return {
    cluster,
    directory: cluster.directory,
    extension,
    running: await extension.start('extension'),
    manager: (protocol, onCall = () => undefined) => ({
      client,
      caller: callerOf(protocol),
      clock: systemClock,
      onCall,
    }),
    // Waits until the extension listens. Before that every call fails, and a real manager would repeat its call as
    // well.
    async whenCallable(protocol) {
      const call = async (): Promise<void> =>
        expect(await callHook(callerOf(protocol), 'Discovery', {})).toMatchObject({
          status: 'Success',
        });
      try {
        await vi.waitFor(call, { timeout: 150_000, interval: 250 });
      } catch (cause) {
        throw new Error(`the extension cannot be called: ${await logOf(cluster)}`, { cause });
      }
    },
    async update(node, manager) {
      const wanted = { machine: machineOf(node), version: TO };
      const { uncovered, message } = await askWhatIsLeft(manager, wanted);
      expect(uncovered, message).toEqual([]);
      await writeDesired(manager, wanted);
      await driveUpdate(manager, wanted);
    },
    async [Symbol.asyncDispose]() {
      await uninstallMachines(client);
      for (const { name } of cluster.hosts) await client.delete(nodes, name);
      await cluster.stop();
    },
  };
}
