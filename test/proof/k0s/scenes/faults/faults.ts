/** What goes wrong on real clusters, one after the other on one cluster. */
import { Refit } from '../../refit.ts';
import type { Scene } from '../../scene.ts';
import { blockedByBudget } from './budget.ts';
import { deletedWorker, fullDisk, wrongClock } from './hosts.ts';
import { killAtRandom } from './kills.ts';
import { badReleases, withoutManager } from './releases.ts';

export async function failInManyWays(scene: Scene): Promise<void> {
  const { cluster, to } = scene;
  const refit = new Refit(cluster, scene.refit);
  await refit.install();
  await cluster.reset(to, 'off');
  await refit.startControllers();
  await refit.startAgents(cluster.machines);
  // Each of these leaves the cluster whole, and tells the version that it runs then.
  let version = to.version;
  version = await killAtRandom(scene, version);
  await badReleases(scene, refit, version);
  await blockedByBudget(scene, refit, version);
  await fullDisk(scene, refit, version);
  version = await wrongClock(scene, refit, version);
  version = await deletedWorker(scene, refit, version);
  await withoutManager(scene, refit, version);
  await refit.stop();
}
