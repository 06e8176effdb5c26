/** Tests an update in place of all five Machines: 3 of a KubeadmControlPlane, 2 of a MachineDeployment. */
import {
  CLUSTER,
  controlPlanes,
  machineDeployments,
  NAMESPACE,
  WORKERS,
} from '../machines/objects.ts';
import { CONTROL_PLANE_VERSIONS, type Scene } from '../scene.ts';

export async function update(scene: Scene): Promise<void> {
  const { checks } = scene;
  const [, controlPlane] = CONTROL_PLANE_VERSIONS;
  const workers = scene.nextVersion();
  const before = {
    controlPlane: await scene.identities('control plane'),
    workers: await scene.identities('workers'),
  };
  await checks.check('KubeadmControlPlane: 3 Machines in place, names and uids kept', async () => {
    await wantControlPlane(scene, { version: controlPlane });
    await scene.settled('control plane', controlPlane);
    return await scene.wrongAfter('control plane', controlPlane, before.controlPlane);
  });
  await checks.check('MachineDeployment: 2 Machines in place, names and uids kept', async () => {
    await wantWorkers(scene, { version: workers });
    await scene.settled('workers', workers);
    return await scene.wrongAfter('workers', workers, before.workers);
  });
  await checks.check('each service was started twice: at first, and once for the update', () => {
    const starts = scene.starts([...before.controlPlane.keys(), ...before.workers.keys()]);
    return Object.entries(starts).flatMap(([name, count]) =>
      count === 2 ? [] : [`${name}: ${count} times`],
    );
  });
}

export async function wantControlPlane({ cluster }: Scene, spec: object): Promise<void> {
  await cluster.client.patch(
    controlPlanes,
    CLUSTER,
    { spec },
    { type: 'merge', namespace: NAMESPACE },
  );
}

/** Changes fields of the template of a MachineDeployment. */
export async function wantWorkers({ cluster }: Scene, spec: object, name = WORKERS): Promise<void> {
  const patch = { spec: { template: { spec } } };
  await cluster.client.patch(machineDeployments, name, patch, {
    type: 'merge',
    namespace: NAMESPACE,
  });
}

/** Waits until the core manager has observed the current spec of the workers. */
export async function seenByCore(scene: Scene): Promise<void> {
  await scene.until('an inspection by the core manager at the new version', async () => {
    const { client } = scene.cluster;
    const { metadata, status } = await client.get(machineDeployments, WORKERS, {
      namespace: NAMESPACE,
    });
    return (status?.observedGeneration ?? 0) >= (metadata.generation ?? 0);
  });
}
