/** Tests processes that are killed in the middle of an update: the leading extension, and the core manager. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { prepareExtension } from '../../../../sandbox/cluster/hook-extension.ts';
import { leases } from '../../../../src/kube/resources.ts';
import { conditionOf } from '../machines/settled.ts';
import type { Scene } from '../scene.ts';
import { wantWorkers } from './update.ts';

/** Nothing calls the second replica. It does all its work as leader. */
export async function killed(scene: Scene): Promise<void> {
  const { checks, cluster, options, managers } = scene;
  const before = await scene.identities('workers');
  const starts = scene.starts(before.keys());
  const directory = join(options.directory, 'standby');
  await mkdir(directory);
  const standby = await prepareExtension({
    cluster,
    directory,
    kubeconfig: scene.extensionKubeconfig,
    rollouts: options.rollouts,
  });
  let leader = '';
  await scene.until('a leader', async () => {
    leader = await holder(scene);
    return leader !== '';
  });
  const second = await standby.start('extension-standby');
  const version = scene.nextVersion();
  await checks.check(
    'the leading extension is killed in the middle of an update: the other replica leads',
    async () => {
      await wantWorkers(scene, { version });
      await underWay(scene);
      process.kill(scene.running.pid, 'SIGKILL');
      await scene.running.stop();
      await scene.until('another leader', async () => (await holder(scene)) !== leader);
      return [];
    },
  );
  await checks.check(
    'the extension is back, and the core manager is killed: both workers end in place',
    async () => {
      await scene.startExtension('extension-again');
      await managers.kill('core');
      await managers.start('core');
      await scene.settled('workers', version);
      return await scene.wrongAfter('workers', version, before);
    },
  );
  await checks.check('each service was started once more, and not twice', () => {
    const now = scene.starts(before.keys());
    return Object.entries(now).flatMap(([name, count]) =>
      count === (starts[name] ?? 0) + 1 ? [] : [`${name}: ${count - (starts[name] ?? 0)} times`],
    );
  });
  await second.stop();
}

/** Waits until Cluster API has asked for an update of some worker. */
export async function underWay(scene: Scene): Promise<void> {
  await scene.until('a worker that is being updated', async () =>
    (await scene.machines('workers')).some(
      (machine) => conditionOf(machine, 'Updating')?.status === 'True',
    ),
  );
}

async function holder({ cluster }: Scene): Promise<string> {
  const { spec } = await cluster.client.get(leases, 'refit-capi-extension', {
    namespace: 'refit-system',
  });
  return spec?.holderIdentity ?? '';
}
