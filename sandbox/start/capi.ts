/** Demonstrates Cluster API's in-place updates: Machines on hosts with agents, updated through the hooks. */
import { table } from '../../src/cli/phrases.ts';
import type { ShownPlan } from '../../src/cli/status/json-form.ts';
import { namespaces, nodes } from '../../src/kube/resources.ts';
import { sleep, systemClock } from '../../src/util/clock.ts';
import { EXIT } from '../../src/util/errors.ts';
import { type Cluster, startCluster } from '../cluster/cluster.ts';
import { callHook } from '../cluster/hook-caller.ts';
import { prepareExtension } from '../cluster/hook-extension.ts';
import {
  askCanUpdate,
  driveUpdate,
  type ManagerOptions,
  type Wanted,
  writeDesired,
} from '../cluster/machine-manager.ts';
import { createDeployment, createMachine, installMachines, joinNode } from '../cluster/machines.ts';
import { createMissing } from '../cluster/objects.ts';
import { startSandboxPlane } from '../cluster/plane.ts';
import type { Demonstration, Ground } from './demonstration.ts';
import { follow } from './follow.ts';

const NODES = 3;
/** The MachineDeployment of all Machines. */
const OWNER = 'workers';
const FROM = 'v1.36.2';
const TO = 'v1.36.3';
const RESTART_DELAY_MS = 1000;
const READY_POLL_MS = 100;
/** The time that the agents get to start on a busy machine, in milliseconds. */
const ASK_WITHIN_MS = 60_000;

export const capi: Demonstration = {
  dialect: 'capi',
  about: [
    `Starts an API server in memory with ${NODES} Machines of one MachineDeployment, a host with an agent for each, and refit`,
    'capi-extension. The demonstration calls its hooks over HTTPS, as Cluster API does, until every Machine is updated. At the',
    'end it requests a change that Refit does not support. Everything is removed at the end.',
  ],
  flags: {},
  help: {},
  async run(_flags, ground) {
    const { directory, started, abort, say } = ground;
    say(`Starting an API server in memory, ${NODES} hosts, and refit capi-extension…`);
    const plane = await startSandboxPlane(directory);
    started.defer(async () => await plane.stop());
    const cluster = await startCluster({
      plane,
      directory,
      controllers: 0,
      workers: NODES,
      version: FROM,
      offers: [TO],
      restartDelayMs: RESTART_DELAY_MS,
    });
    started.defer(async () => await cluster.stop());
    await installMachines(cluster.client, systemClock);
    await createMissing(cluster.client, namespaces, { metadata: { name: 'refit-system' } });
    await createDeployment(cluster.client, OWNER, TO);
    const names = await Promise.all(
      cluster.hosts.map(async ({ name: node }) => {
        const example = { name: `md-${node}`, version: FROM, node, deployment: OWNER };
        await joinNode(cluster.client, example);
        const { metadata } = await createMachine(cluster.client, example);
        return metadata.name;
      }),
    );
    const kubeconfig = await plane.kubeconfig('admin');
    const extension = await prepareExtension({ cluster, directory, kubeconfig });
    await extension.start('refit-capi-extension');
    const { url, authority, client } = extension;
    const manager = {
      client: cluster.client,
      caller: { url, authority, client, protocol: 'h2' },
      clock: systemClock,
      abort,
    } as const;
    await whenAnswering(manager, abort);
    say(`Update requested: all Machines from ${FROM} to ${TO}.\n`);
    const runs = Promise.all(names.map(async (machine) => await update(manager, machine)));
    // An interruption also rejects `runs`. The `await` below reports that error.
    runs.catch(() => undefined);
    const { code, views } = await follow(kubeconfig, ground);
    if (code === EXIT.interrupted) return code;
    await runs;
    await showEnd(cluster, views, ground);
    await showRefusal(manager, names[0] ?? '', ground);
    await ground.keep?.(kubeconfig);
    return code;
  },
};

/** Waits until the process listens. */
async function whenAnswering({ caller }: ManagerOptions, abort: AbortSignal): Promise<void> {
  while ((await callHook(caller, 'Discovery', {}).catch(() => undefined)) === undefined) {
    await sleep(systemClock, READY_POLL_MS, abort);
  }
}

async function update(manager: ManagerOptions, machine: string): Promise<void> {
  const wanted = { machine, version: TO };
  const uncovered = await untilAccepted(manager, wanted);
  if (uncovered.length > 0)
    throw new Error(`Machine ${machine}: ${uncovered.join(', ')} cannot change in place`);
  await writeDesired(manager, wanted);
  await driveUpdate(manager, wanted);
}

/** Asks again after a failure, as managers do, because an agent may not have started yet. */
async function untilAccepted(manager: ManagerOptions, wanted: Wanted): Promise<string[]> {
  const deadline = systemClock.monotonic() + ASK_WITHIN_MS;
  for (;;) {
    try {
      return await askCanUpdate(manager, wanted);
    } catch (error) {
      if (systemClock.monotonic() >= deadline) throw error;
      await sleep(systemClock, READY_POLL_MS, manager.abort);
    }
  }
}

async function showEnd(
  { client, hosts }: Cluster,
  views: readonly ShownPlan[],
  { say }: Ground,
): Promise<void> {
  const targets = views.flatMap(({ stages }) => stages.flatMap((stage) => stage.targets));
  const rows = await Promise.all(
    hosts.map(async (host) => {
      const target = targets.find(({ name }) => name === host.name);
      const { status } = await client.get(nodes, host.name);
      return [
        target?.machine ?? '',
        host.name,
        `${target?.from ?? FROM} → ${await host.version()}`,
        status?.nodeInfo?.kubeletVersion ?? '',
        target?.phase ?? '',
      ];
    }),
  );
  say('');
  for (const line of table(['MACHINE', 'NODE', 'VERSION', 'KUBELET', 'STATE'], rows)) say(line);
}

async function showRefusal(
  manager: ManagerOptions,
  machine: string,
  { say }: Ground,
): Promise<void> {
  const wanted = { machine, version: TO, files: [{ path: '/etc/demo', content: '' }] };
  const uncovered = await askCanUpdate(manager, wanted);
  say(
    `\nRequested a change of the bootstrap files of ${machine}: ${uncovered.join(', ')} cannot change in place. The Machine is unchanged.`,
  );
}
