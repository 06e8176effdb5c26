/** Part `upgrade-script`: the real script of k3s-io/k3s-upgrade runs in the pods of Plans that Refit carries out. */
import { installRefit } from '../controllers.ts';
import type { Scene } from '../scene.ts';
import { installK3s } from './install.ts';
import { emptyImage, refusedDowngrade } from './refusals.ts';
import { preparedInVain, serversBeforeAgents } from './upgrades.ts';

export async function proveUpgradeScript(scene: Scene): Promise<void> {
  await installK3s(scene);
  // While the Job of an agent waits for the servers, its deadline counts. The manifest of the original has this value.
  await installRefit(scene, { SYSTEM_UPGRADE_JOB_ACTIVE_DEADLINE_SECONDS: '900' });
  for (const play of [serversBeforeAgents, preparedInVain, refusedDowngrade, emptyImage])
    await play(scene);
}
