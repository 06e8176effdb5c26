/**
 * Tests a MachineHealthCheck that finds a worker unhealthy. It does not replace a worker during an update, and replaces
 * a worker that is not being updated.
 */
import { ifFound } from '../../../../src/kube/status-error.ts';
import {
  CLUSTER,
  capiMachines,
  machineHealthChecks,
  NAMESPACE,
  of,
  WORKERS,
} from '../machines/objects.ts';
import { conditionOf } from '../machines/settled.ts';
import type { Scene } from '../scene.ts';
import { versionOfWorkers } from './uncovered.ts';
import { wantWorkers } from './update.ts';

const CHECK = 'not-ready';
const PATIENCE_S = 3;
const SKIP = 'cluster.x-k8s.io/skip-remediation';

export async function remediation(scene: Scene): Promise<void> {
  const unhealthyNodeConditions = [{ type: 'Ready', status: 'False', timeoutSeconds: PATIENCE_S }];
  const selector = { matchLabels: { 'cluster.x-k8s.io/deployment-name': WORKERS } };
  const spec = { clusterName: CLUSTER, selector, checks: { unhealthyNodeConditions } };
  await scene.apply(of('cluster.x-k8s.io', 'MachineHealthCheck', CHECK, spec));
  await heldOff(scene);
  await replaced(scene);
  await scene.cluster.client.delete(machineHealthChecks, CHECK, { namespace: NAMESPACE });
}

async function heldOff(scene: Scene): Promise<void> {
  const { checks, cluster, machineNodes } = scene;
  const before = await scene.identities('workers');
  const version = scene.nextVersion();
  await checks.check(
    'a worker that is not Ready in the middle of its update is not replaced',
    async () => {
      // If the kubelet of a node does not report, the agent of the node keeps waiting after the restart.
      const restarts = [...before.keys()].map((name) => machineNodes.mute(name));
      await wantWorkers(scene, { version });
      const name = await skipped(scene);
      await machineNodes.breakNode(name);
      const end = Date.now() + 5 * PATIENCE_S * 1000;
      const wrong = new Set<string>();
      await scene.until('five times the patience of the check', async () => {
        const machine = await ifFound(
          cluster.client.get(capiMachines, name, { namespace: NAMESPACE }),
        );
        const isThere =
          machine?.metadata.uid === before.get(name)?.uid && !machine?.metadata.deletionTimestamp;
        if (!isThere) wrong.add('it was deleted');
        if (machine && conditionOf(machine, 'OwnerRemediated'))
          wrong.add('its remediation was asked for');
        return Date.now() > end;
      });
      for (const restart of restarts) restart();
      await scene.settled('workers', version);
      return [...wrong, ...(await scene.wrongAfter('workers', version, before))];
    },
  );
  await checks.check('after the update no Machine is left out of health checks', async () => {
    await scene.until('no annotation', async () =>
      (await scene.machines('workers')).every(
        ({ metadata }) => metadata.annotations?.[SKIP] === undefined,
      ),
    );
    return [];
  });
}

/** Returns the name of a Machine that health checks skip because its service is being replaced. */
async function skipped(scene: Scene): Promise<string> {
  let name: string | undefined;
  await scene.until('a Machine that health checks leave out', async () => {
    const machines = await scene.machines('workers');
    name = machines.find(({ metadata }) => metadata.annotations?.[SKIP] !== undefined)?.metadata
      .name;
    return name !== undefined;
  });
  return name ?? '';
}

async function replaced(scene: Scene): Promise<void> {
  const { checks, machineNodes } = scene;
  const before = await scene.identities('workers');
  const [name = ''] = before.keys();
  const version = await versionOfWorkers(scene);
  await checks.check(
    'the same check replaces a worker that is not Ready without an update',
    async () => {
      machineNodes.mute(name);
      await machineNodes.breakNode(name);
      await scene.until('another Machine', async () =>
        (await scene.machines('workers')).every(({ metadata }) => metadata.name !== name),
      );
      await scene.settled('workers', version);
      before.delete(name);
      return await scene.wrongAfter('workers', version, before);
    },
  );
}
