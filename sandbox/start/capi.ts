/** Demonstrates Cluster API's in-place updates: Machines on hosts with agents, updated through the hooks. */
import type { HookObject, Triple } from '../../src/api/capi/hooks.ts';
import { type Machine, machines } from '../../src/api/capi/machine.ts';
import type { PlanView } from '../../src/cli/status/view.ts';
import { table } from '../../src/cli/table.ts';
import { HANDLERS } from '../../src/dialects/capi/routes.ts';
import { namespaces, nodes } from '../../src/kube/resources.ts';
import { sleep, systemClock } from '../../src/util/clock.ts';
import { EXIT } from '../../src/util/errors.ts';
import { type Cluster, startCluster } from '../cluster/cluster.ts';
import { type Extension, prepareExtension } from '../cluster/hook-extension.ts';
import { createMachine, installMachines } from '../cluster/machines.ts';
import { createMissing } from '../cluster/objects.ts';
import { startSandboxPlane } from '../cluster/plane.ts';
import { hookUpdater } from '../orchestrator/hook-updater.ts';
import { machineSubject } from '../orchestrator/machine-subject.ts';
import type { Run } from '../orchestrator/run.ts';
import { runUpdate, type Updater } from '../orchestrator/runner.ts';
import type { Demonstration, Ground } from './demonstration.ts';
import { follow } from './follow.ts';

const NODES = 3;
const FROM = 'v1.36.2';
const TO = 'v1.36.3';
const RESTART_DELAY_MS = 1000;
const READY_POLL_MS = 100;
const [CAN, _CAN_SET, UPDATE] = HANDLERS;

export const capi: Demonstration = {
  dialect: 'capi',
  about: [
    `Starts an API server in memory with ${NODES} Machines of Cluster API, a host with an agent for each, and refit`,
    'capi-extension. A runner calls its hooks over HTTPS, as Cluster API does, until every Machine is updated. At the end it',
    'requests a change that no updater supports. Everything is removed at the end.',
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
    const names = await Promise.all(
      cluster.hosts.map(async ({ name: node }) => {
        const { metadata } = await createMachine(cluster.client, { name: `md-${node}`, version: FROM, node });
        return metadata.name;
      }),
    );
    const kubeconfig = await plane.kubeconfig('admin');
    const extension = await prepareExtension({ cluster, directory, kubeconfig });
    await extension.start('refit-capi-extension');
    const updater = await whenAnswering(extension, abort);
    say(`Update requested: all Machines from ${FROM} to ${TO}.\n`);
    const runs = Promise.all(names.map(async (name) => await update(cluster, updater, name, { version: TO }, ground)));
    // An interruption rejects them too; the await below reports it.
    runs.catch(() => undefined);
    const { code, views } = await follow(kubeconfig, abort);
    if (code === EXIT.interrupted) return code;
    await runs;
    await showEnd(cluster, views, ground);
    await showRefusal(cluster, updater, names[0] ?? '', ground);
    return code;
  },
};

/** Waits until the process listens. */
async function whenAnswering({ url, authority }: Extension, abort: AbortSignal): Promise<Updater> {
  const handlers = { canUpdateMachine: CAN?.name ?? '', updateMachine: UPDATE?.name ?? '' };
  const updater = hookUpdater({ name: 'refit', url, authority, handlers });
  const probe: Triple = { machine: objectOf('Machine', 'probe', {}), infrastructureMachine: objectOf('X', 'x', {}) };
  for (;;) {
    const answered = await updater.canUpdate(probe, probe).catch(() => undefined);
    if (answered) return updater;
    await sleep(systemClock, READY_POLL_MS, abort);
  }
}

async function update(
  { client }: Cluster,
  updater: Updater,
  name: string,
  change: { readonly version?: string; readonly files?: readonly object[] },
  { abort }: Pick<Ground, 'abort'>,
): Promise<Run> {
  const subject = await machineSubject(client, name, 'default');
  const machine = await client.get(machines, name, { namespace: 'default' });
  const { version, files } = change;
  const current = tripleOf(machine, {});
  const desired = tripleOf(
    version ? { ...machine, spec: { ...machine.spec, version } } : machine,
    files ? { files } : {},
  );
  return await runUpdate({ subject, updaters: [updater], clock: systemClock }, current, desired, abort);
}

function tripleOf({ metadata: { name }, spec }: Machine, bootstrap: object): Triple {
  return {
    machine: objectOf('Machine', name, spec ?? {}),
    infrastructureMachine: objectOf('StandInMachine', name, {}),
    bootstrapConfig: objectOf('StandInConfig', name, bootstrap),
  };
}

function objectOf(kind: string, name: string, spec: object): HookObject {
  return { apiVersion: 'example.com/v1', kind, metadata: { name, namespace: 'default' }, spec };
}

async function showEnd({ client, hosts }: Cluster, views: readonly PlanView[], { say }: Ground): Promise<void> {
  const rows = await Promise.all(
    hosts.map(async (host) => {
      const view = views.find(({ stages }) => stages[0]?.targets[0]?.name === host.name);
      const { status } = await client.get(nodes, host.name);
      const from = view?.stages[0]?.targets[0]?.from ?? FROM;
      return [
        view?.name ?? '',
        host.name,
        `${from} → ${await host.version()}`,
        status?.nodeInfo?.kubeletVersion ?? '',
        view?.phase ?? '',
      ];
    }),
  );
  say('');
  for (const line of table(['MACHINE', 'NODE', 'VERSION', 'KUBELET', 'STATE'], rows)) say(line);
}

async function showRefusal(cluster: Cluster, updater: Updater, name: string, ground: Ground): Promise<void> {
  const { message = '' } = await update(cluster, updater, name, { files: [{ path: '/etc/demo' }] }, ground);
  ground.say(`\nRequested a change of the bootstrap files of ${name}: ${message}. The Machine is unchanged.`);
}
