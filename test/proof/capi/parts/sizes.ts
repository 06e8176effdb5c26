/** Tests which Machines Cluster API replaces although Refit could update them. The numbers of Machines decide this. */
import { machineDeployments, NAMESPACE, WORKERS } from '../machines/objects.ts';
import type { Scene } from '../scene.ts';
import { versionOfWorkers } from './uncovered.ts';
import { wantWorkers } from './update.ts';

export async function sizes(scene: Scene): Promise<void> {
  const { checks } = scene;
  await checks.check(
    'a MachineDeployment of one Machine with maxSurge 1: Cluster API replaces it',
    async () => {
      await scaled(scene, 1, { maxSurge: 1, maxUnavailable: 0 });
      const before = await scene.identities('workers');
      const version = scene.nextVersion();
      await wantWorkers(scene, { version });
      await scene.settled('workers', version, 1);
      return [...(await scene.identities('workers')).keys()]
        .filter((name) => before.has(name))
        .map((name) => `${name} is still there`);
    },
  );
  await checks.check(
    'three Machines with maxSurge 1: one is created, two are updated in place, one is deleted',
    async () => {
      await scaled(scene, 3, { maxSurge: 1, maxUnavailable: 0 });
      const before = await scene.identities('workers');
      const version = scene.nextVersion();
      await wantWorkers(scene, { version });
      await scene.settled('workers', version, 3);
      const after = await scene.identities('workers');
      const kept = new Map([...before].filter(([name]) => after.has(name)));
      const wrong = await scene.wrongAfter('workers', version, kept);
      return kept.size === 2 ? wrong : [`${kept.size} are kept`, ...wrong];
    },
  );
  await scaled(scene, 2, { maxSurge: 0, maxUnavailable: 1 });
}

/** Scales the workers. `then` runs after the change is requested and before its end is awaited. */
export async function scaled(
  scene: Scene,
  replicas: number,
  rollingUpdate: object,
  at?: string,
  then: () => Promise<void> = async () => await Promise.resolve(),
): Promise<void> {
  const version = at ?? (await versionOfWorkers(scene));
  const spec = { replicas, rollout: { strategy: { type: 'RollingUpdate', rollingUpdate } } };
  await scene.cluster.client.patch(
    machineDeployments,
    WORKERS,
    { spec },
    { type: 'merge', namespace: NAMESPACE },
  );
  await then();
  await scene.settled('workers', version, replicas);
}
