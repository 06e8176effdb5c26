/** A budget that allows no disruption. */
import { until } from '../../../wait.ts';
import { ENDED } from '../../outcome.ts';
import { planFor, untilState } from '../../plan.ts';
import type { Refit } from '../../refit.ts';
import type { Scene } from '../../scene.ts';
import { budget, deployment, podsOf } from '../../workloads.ts';

/** Upgrades one worker and takes it back, so that the cluster has one version again. */
export async function blockedByBudget(scene: Scene, refit: Refit, version: string): Promise<void> {
  const { cluster, checks } = scene;
  const next = scene.later.at(-1)?.version ?? '';
  await cluster.forget();
  for (const object of [
    deployment('guarded', 'w1'),
    budget('guarded', 1),
    {
      apiVersion: 'upgrade.refit.dev/v1alpha1',
      kind: 'UpgradePolicy',
      metadata: { name: 'impatient' },
      spec: { deadlines: { drain: '20s' } },
    },
  ])
    await cluster.apply(object);
  await until('the guarded pod to run on w1', 180, async () =>
    (await podsOf(cluster, 'app=guarded')).some(
      ({ node, phase }) => node === 'w1' && phase === 'Running',
    ),
  );
  await checks.check(
    'a budget that blocks: the drain ends in time, and the node is uncordoned',
    async () => {
      await cluster.apply(planFor(scene, next, { id: 'budget', controllers: [], workers: ['w1'] }));
      const state = await untilState(scene, ENDED);
      const { stdout } = await refit.command('why', 'w1');
      return [
        ...(state === 'ApplyFailed' ? [] : [`the plan is ${state}`]),
        ...(stdout.includes('guarded') ? [] : [`refit why w1 says: ${stdout}`]),
        ...(await cluster.left()),
        ...(await cluster.unsettled(version)),
      ];
    },
  );
  await checks.check(
    'a budget that blocks: after it is gone, refit retry upgrades the node',
    async () => {
      await cluster.kubectl('delete', 'pdb', 'guarded');
      const { ok, stdout, stderr } = await refit.command('retry', 'w1');
      if (!ok) return [stdout + stderr];
      const state = await untilState(scene, ['Completed']);
      const found = await cluster.versionOn(cluster.named('w1'));
      return [
        ...(state === 'Completed' ? [] : [`the plan is ${state}`]),
        ...(found === next ? [] : [`w1 runs ${found}`]),
        ...(await cluster.left()),
      ];
    },
  );
  await cluster.kubectl('delete', 'deployment', 'guarded');
  await checks.check('a budget that blocks: refit rollback takes the node back', async () => {
    const { ok, stdout, stderr } = await refit.command(
      'rollback',
      'autopilot',
      '--reason',
      'once more',
      '--yes',
    );
    if (!ok) return [stdout + stderr];
    await cluster.settled(version);
    const state = await untilState(scene, ENDED);
    return state === 'Completed' ? await cluster.left() : [`the plan is ${state}`];
  });
}
