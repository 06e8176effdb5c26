/** Part `suite`: the original's own specs run against the original, and then against Refit, on the same cluster. */

import { until } from '../wait.ts';
import { compare, tableOf } from './columns.ts';
import { originalImage, STAND_IN, SWITCH } from './images.ts';
import { administer, get, originalOf, type Scene } from './scene.ts';
import { runSuite, type Spec } from './suite.ts';

export const PLANS = 'plans.upgrade.cattle.io';

export async function proveSuite(scene: Scene): Promise<void> {
  const { options, checks, log } = scene;
  const original = await column(scene, 'original', originalImage(options.version));
  await clear(scene);
  log(`Refit runs with ${SWITCH}: with the default, it does not create the definition of Plans`);
  const refit = await column(scene, 'refit', STAND_IN);
  for (const line of tableOf(original, refit)) log(line);
  await compare(checks, original, refit);
}

async function column(scene: Scene, name: string, image: string): Promise<Spec[]> {
  const { options, cluster, log } = scene;
  const { directory, logs } = options;
  const original = originalOf(scene);
  const { kubeconfig } = cluster;
  log(`the suite runs with ${image}`);
  return await runSuite({ suite: original.suite, kubeconfig, image, directory, logs, name });
}

/** Removes what the first run left, so that the second run finds a cluster without the definition of Plans. */
async function clear(scene: Scene): Promise<void> {
  await until('the namespaces of the suite to be gone', 180, async () => {
    const { items } = await get<{ items: unknown[] }>(scene, 'namespaces', '-l', 'e2e-framework');
    return items.length === 0;
  });
  await administer(scene, 'delete', 'customresourcedefinition', PLANS, '--ignore-not-found');
  for (const { name } of scene.cluster.workers) await administer(scene, 'uncordon', name);
}
