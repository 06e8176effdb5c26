/**
 * Tests a MachineHealthCheck that doesn't know about updates. The Machine that waits too long is replaced, and Refit
 * continues.
 */
import { CLUSTER, machineHealthChecks, NAMESPACE, of } from '../machines/objects.ts';
import type { Scene } from '../scene.ts';
import { held, release } from './failed-update.ts';

const CHECK = 'too-long';
const PATIENCE_S = 5;

export async function deletedMidway(scene: Scene): Promise<void> {
  const { checks, cluster } = scene;
  const before = await scene.identities('workers');
  const version = scene.nextVersion();
  const { metadata } = await held(scene, version);
  const unhealthyMachineConditions = [
    { type: 'Updating', status: 'True', timeoutSeconds: PATIENCE_S },
  ];
  const spec = {
    clusterName: CLUSTER,
    selector: {
      matchLabels: {
        'cluster.x-k8s.io/deployment-name': metadata.labels?.['cluster.x-k8s.io/deployment-name'],
      },
    },
    checks: { unhealthyMachineConditions },
  };
  await checks.check(
    'a MachineHealthCheck replaces a Machine in the middle of its update; the other one ends in place',
    async () => {
      await scene.apply(of('cluster.x-k8s.io', 'MachineHealthCheck', CHECK, spec));
      await scene.until('the Machine is gone', async () => {
        const machines = await scene.machines('workers');
        return machines.every(({ metadata: { uid } }) => uid !== metadata.uid);
      });
      await cluster.client.delete(machineHealthChecks, CHECK, { namespace: NAMESPACE });
      await release(scene);
      await scene.settled('workers', version);
      before.delete(metadata.name);
      return await scene.wrongAfter('workers', version, before);
    },
  );
}
