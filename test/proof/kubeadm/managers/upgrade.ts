/**
 * Tests that Cluster API's managers can make a kubeadm cluster of real machines, and upgrade it in place through Refit,
 * as docs/guides/cluster-api.md describes.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { KubeClient } from '../../../../src/kube/client.ts';
import { loadClusterConfig } from '../../../../src/kube/config/kubeconfig.ts';
import { type Node, secrets } from '../../../../src/kube/resources.ts';
import { createClient } from '../../../../src/kube/transport/http-client.ts';
import { procedureOf } from '../../../../src/signal/agent-presence.ts';
import { messageOf } from '../../../../src/util/errors.ts';
import {
  capiMachines,
  controlPlanes,
  machineDeployments,
  NAMESPACE,
  type ProofMachine,
} from '../../capi/machines/objects.ts';
import { inWords, isSettled } from '../../capi/machines/settled.ts';
import type { Program } from '../../capi/managers/programs.ts';
import { differing } from '../../checks.ts';
import { until } from '../../wait.ts';
import { AGENT_LOG, furnishAgent, listOffers, serve } from '../agents/agent.ts';
import type { Scene } from '../upgrade.ts';
import { settled, verify } from '../verify.ts';
import { startManagement } from './management.ts';
import {
  ALLOWED,
  CLUSTER,
  clusterObjects,
  controlPlaneConfig,
  MOTD,
  type Wanted,
  WORKERS,
  workersTemplate,
} from './objects.ts';
import { devClusters, provide } from './provider.ts';

/**
 * The limit of a wait in seconds. Three control planes that are upgraded one after the other need this long on two
 * cores.
 */
const PATIENCE_S = 1200;
const OPTIONS = { 'node-configuration': ALLOWED.join() };
const MERGE = { type: 'merge', namespace: NAMESPACE } as const;

export async function upgradeByManagers(scene: Scene, programs: readonly Program[]): Promise<void> {
  const { cluster, operator, checks, log, from, to } = scene;
  const { machines } = cluster;
  const [first] = machines;
  if (first === undefined) throw new Error('a proof needs a control plane');
  await using started = new AsyncDisposableStack();
  for (const machine of machines) await furnishAgent(machine, operator.refit, OPTIONS);
  const server = await serve((await listOffers(first, to)).folder);
  started.defer(() => void server.close());
  const { refit, manifest } = operator;
  const management = await startManagement(
    { directory: dirname(manifest), programs, refit, log },
    started,
  );
  using client = createClient(await loadClusterConfig({ path: management.kubeconfig }));
  started.use(provide(client, cluster, log));
  const counts = { controlPlanes: cluster.controlPlanes.length, workers: cluster.workers.length };
  try {
    await checks.check(
      `Cluster API makes a cluster of ${from}, and its bootstrap data starts the agents`,
      async () => {
        await management.apply(
          ...clusterObjects(counts, { version: from, motd: 'old\n', verbosity: '2' }),
        );
        const status = { initialization: { provisioned: true } };
        await client.patch(devClusters, CLUSTER, { status }, { ...MERGE, subresource: 'status' });
        await until(
          'the kubeconfig of the cluster',
          300,
          async () => (await kubeconfigOf(client)) !== '',
        );
        await writeFile(cluster.kubeconfig, await kubeconfigOf(client));
        await machinesAt(client, from, counts.controlPlanes + counts.workers);
        await settled(cluster, operator);
        await until('the agents', 120, async () => await haveAgents(scene));
        return [];
      },
    );
    const before = await identities(client);
    const wanted: Wanted = { version: to, motd: 'new\n', verbosity: '3' };
    const unchanged = async (): Promise<string[]> =>
      (await identities(client)).join() === before.join()
        ? []
        : ['a Machine or its Node is another'];
    await checks.check('KubeadmControlPlane: all Machines in place', async () => {
      const spec = { version: to, kubeadmConfigSpec: controlPlaneConfig(wanted) };
      await client.patch(controlPlanes, CLUSTER, { spec }, MERGE);
      await machinesAt(client, to, counts.controlPlanes);
      return await unchanged();
    });
    await checks.check('MachineDeployment: all Machines in place', async () => {
      const name = `${WORKERS}-next`;
      await management.apply(workersTemplate(name, wanted));
      const spec = { version: to, bootstrap: { configRef: { name } } };
      await client.patch(machineDeployments, WORKERS, { spec: { template: { spec } } }, MERGE);
      await machinesAt(client, to, counts.controlPlanes + counts.workers);
      return await unchanged();
    });
    await verifyConfiguration(scene, wanted);
    await verify('after the managers', checks, cluster, operator, to);
  } finally {
    for (const { name, root } of machines)
      await operator.keep(
        [`agent-${name}`],
        await readFile(join(root, AGENT_LOG), 'utf8').catch(() => ''),
      );
    await operator.keep(['extension'], management.said());
  }
}

/** Checks what the in-place update changes in addition to the version. */
async function verifyConfiguration({ checks, cluster }: Scene, wanted: Wanted): Promise<void> {
  const { machines } = cluster;
  await checks.check('the other updater has changed the file on each machine', async () => {
    const texts = await Promise.all(
      machines.map(async ({ root }) => await readFile(join(root, MOTD), 'utf8')),
    );
    return differing(
      Object.fromEntries(machines.map(({ name }, index) => [name, texts[index]])),
      wanted.motd,
    );
  });
  await checks.check('and each kubelet runs with the other argument', async () => {
    const runs = async (machine: Scene['cluster']['machines'][number]): Promise<boolean> =>
      (await machine.run(`pgrep -f '[k]ubelet .* --v=${wanted.verbosity}'`)).ok;
    const asked = machines.map(async (machine) => [machine.name, await runs(machine)] as const);
    return differing(Object.fromEntries(await Promise.all(asked)), true);
  });
}

/** Returns the kubeconfig that the control-plane manager makes. Empty as long as it is not made. */
async function kubeconfigOf(client: KubeClient): Promise<string> {
  const secret = await client
    .get(secrets, `${CLUSTER}-kubeconfig`, { namespace: NAMESPACE })
    .catch(() => undefined);
  return Buffer.from(secret?.data?.['value'] ?? '', 'base64').toString();
}

async function machinesOf(client: KubeClient): Promise<readonly ProofMachine[]> {
  return (await client.listAll(capiMachines, { namespace: NAMESPACE })).items;
}

async function machinesAt(client: KubeClient, version: string, count: number): Promise<void> {
  await until(`${count} Machines at ${version}`, PATIENCE_S, async () => {
    const machines = await machinesOf(client);
    return machines.filter((machine) => isSettled(machine, version)).length === count;
  }).catch(async (error: unknown) => {
    throw new Error([messageOf(error), ...inWords(await machinesOf(client))].join('; '), {
      cause: error,
    });
  });
}

/** Returns the properties of all Machines that must not change in an update in place. */
async function identities(client: KubeClient): Promise<readonly string[]> {
  const machines = await machinesOf(client);
  return machines
    .map(({ metadata, status }) => JSON.stringify([metadata.name, metadata.uid, status?.nodeRef]))
    .toSorted();
}

async function haveAgents({ operator }: Scene): Promise<boolean> {
  const { items } = await operator.get<{ items: Node[] }>('nodes');
  return items.every((node) => procedureOf(node) === 'kubeadm');
}
