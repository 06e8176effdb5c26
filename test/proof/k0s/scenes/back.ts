/** `refit rollback` after the end of a plan, in its middle, and after a release that failed. */
import { until } from '../../wait.ts';
import { AuditLogs } from '../observe/audit.ts';
import { signalOrder } from '../observe/figures.ts';
import { watchHosts } from '../observe/hosts.ts';
import { ENDED, unsignalled, upgradeAndCheck } from '../outcome.ts';
import { planFor, stateOf, targetState, untilState } from '../plan.ts';
import { Refit } from '../refit.ts';
import type { Scene } from '../scene.ts';

export async function goBack(scene: Scene): Promise<void> {
  const { cluster, from, to } = scene;
  const refit = new Refit(cluster, scene.refit);
  await refit.install();
  await cluster.reset(from, 'off');
  await refit.startControllers();
  await refit.startAgents(cluster.machines);
  await upgradeAndCheck(scene, 'forward', to.version);
  await back(
    scene,
    refit,
    'after the end',
    cluster.machines.map(({ name }) => name),
  );
  await inTheMiddle(scene, refit);
  await afterFailedRelease(scene, refit);
  await refit.stop();
}

async function inTheMiddle(scene: Scene, refit: Refit): Promise<void> {
  const { cluster, checks, to } = scene;
  await cluster.forget();
  await checks.check(
    'in the middle: the plan is aborted when the first worker is done',
    async () => {
      await cluster.apply(planFor(scene, to.version, { id: 'middle' }));
      await until(
        'w1 to be done',
        300,
        async () => (await targetState(scene, 'w1')) === 'SignalCompleted',
      );
      const refused = await refit.command(
        'rollback',
        'autopilot',
        '--reason',
        'too early',
        '--yes',
      );
      const aborted = await refit.command('abort', 'autopilot', '--reason', 'wrong release');
      await untilState(scene, ['ApplyFailed', 'Completed']);
      return [
        ...(refused.ok ? ['rollback was not refused while the plan ran'] : []),
        ...(aborted.ok ? [] : [aborted.stdout + aborted.stderr]),
      ];
    },
  );
  // Whether the second worker had begun, and so goes back, is a matter of time.
  await back(scene, refit, 'in the middle', ['w1', 'c1', 'c2', 'c3']);
}

async function afterFailedRelease(scene: Scene, refit: Refit): Promise<void> {
  const { cluster, checks, withoutKubelet } = scene;
  if (withoutKubelet === undefined) throw new Error('this scene needs a release without a kubelet');
  await cluster.forget();
  await cluster.apply({
    apiVersion: 'upgrade.refit.dev/v1alpha1',
    kind: 'UpgradePolicy',
    metadata: { name: 'impatient' },
    spec: { deadlines: { ready: '45s' } },
  });
  await checks.check(
    'after a failed release: the first worker is rolled back, and the plan fails',
    async () => {
      await cluster.apply(planFor(scene, withoutKubelet.version, { id: 'failed' }));
      const state = await untilState(scene, ENDED);
      const w1 = await cluster.versionOn(cluster.named('w1'));
      const others = await Promise.all(
        ['w2', 'w3'].map(async (name) => await cluster.versionOn(cluster.named(name))),
      );
      return [
        ...(state === 'ApplyFailed' ? [] : [`the plan is ${state}`]),
        ...[w1, ...others]
          .filter((version) => version !== scene.from.version)
          .map((version) => `a worker runs ${version}`),
      ];
    },
  );
  // The first worker has gone back by itself.
  await back(scene, refit, 'after a failed release', ['c1', 'c2', 'c3']);
}

/** Goes back to `from`, and checks the versions on the hosts and the order of the nodes that must go back. */
async function back(
  scene: Scene,
  refit: Refit,
  title: string,
  expected: readonly string[],
): Promise<void> {
  const { cluster, checks, from } = scene;
  const audit = new AuditLogs(cluster.controllers);
  await using watched = watchHosts(cluster, 1);
  await checks.check(`${title}: refit rollback ends as Completed`, async () => {
    const { ok, stdout, stderr } = await refit.command(
      'rollback',
      'autopilot',
      '--reason',
      'wrong release',
      '--yes',
    );
    if (!ok) return [stdout + stderr];
    await until('the plan to run', 60, async () => (await stateOf(scene)) !== '');
    const state = await untilState(scene, ENDED);
    return state === 'Completed' ? [] : [`the plan is ${state}`];
  });
  await checks.check(
    `${title}: every host runs ${from.version}, and nothing is left behind`,
    async () => {
      await cluster.settled(from.version);
      return await cluster.left();
    },
  );
  await checks.check(`${title}: workers first, one at a time`, () => {
    const order = signalOrder(
      audit.writes(),
      cluster.machines.map(({ name }) => name),
    );
    return [
      ...watched.violations,
      ...unsignalled(order, expected),
      ...(/c.*w/.test(order.join(' ')) ? [`the order was ${order.join(', ')}`] : []),
    ];
  });
}
