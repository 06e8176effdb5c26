/** Tests versions to which Cluster API would allow an update in place, and Refit does not. */
import { updaterSets } from '../../../../src/api/refit/updater-set.ts';
import type { Scene } from '../scene.ts';
import { useUpdaters, versionOfWorkers } from './uncovered.ts';
import { wantWorkers } from './update.ts';

const FAILED_CALLS = 2;

export async function ahead(scene: Scene): Promise<void> {
  const { checks, cluster } = scene;
  await useUpdaters(scene, { uncovered: 'Refuse', updaters: [{ name: 'refit', refit: {} }] });
  const before = await scene.identities('workers');
  const current = await versionOfWorkers(scene);
  for (const [version, what] of [
    ['v1.38.0+k0s.0', 'two minor versions ahead of the API server'],
    ['v1.35.0+k0s.0', 'lower'],
  ] as const)
    await checks.check(
      `workers that are to be ${what}: none is updated or replaced, and all goes on`,
      async () => {
        await wantWorkers(scene, { version });
        await scene.failedCalls('core', 'CanUpdateMachineSet', FAILED_CALLS);
        const wrong = await scene.wrongAfter('workers', current, before);
        await wantWorkers(scene, { version: current });
        await scene.settled('workers', current);
        return wrong;
      },
    );
  await cluster.client.delete(updaterSets, 'in-place');
}
