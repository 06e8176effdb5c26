/** Tests a control plane of one Machine. Cluster API replaces this Machine, although Refit could update it. */
import { clusterObjects, controlPlanes, NAMESPACE } from '../machines/objects.ts';
import type { Scene } from '../scene.ts';

const SINGLE = 'single';

export async function oneControlPlane(scene: Scene): Promise<void> {
  const versions = { controlPlane: 'v1.36.1', workers: 'v1.36.1' };
  await scene.apply(...clusterObjects({ name: SINGLE, controlPlanes: 1, workers: 0, versions }));
  const there = async (): Promise<string[]> => {
    const machines = await scene.machines('control plane', SINGLE);
    return machines.flatMap(({ metadata, status }) =>
      status?.nodeRef === undefined ? [] : [metadata.uid ?? ''],
    );
  };
  await scene.until('a control plane of one Machine', async () => (await there()).length === 1);
  const [before] = await there();
  const asked = await scene.managers.calls('core', 'UpdateMachine');
  await scene.checks.check(
    'a control plane of one Machine: Cluster API replaces it, and asks for no update',
    async () => {
      const options = { type: 'merge', namespace: NAMESPACE } as const;
      await scene.cluster.client.patch(
        controlPlanes,
        SINGLE,
        { spec: { version: 'v1.36.2' } },
        options,
      );
      await scene.until('another Machine', async () => {
        const now = await there();
        return now.length === 1 && now[0] !== before;
      });
      const { all } = await scene.managers.calls('core', 'UpdateMachine');
      return all === asked.all ? [] : [`${all - asked.all} calls of UpdateMachine`];
    },
  );
}
