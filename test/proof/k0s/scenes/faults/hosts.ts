/** Hosts that fail: a full disk, a wrong clock, and a worker that is gone. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Machine } from '../../../machines/machine.ts';
import { until } from '../../../wait.ts';
import { startK0s } from '../../cluster/cluster.ts';
import { ENDED, upgradeAndCheck } from '../../outcome.ts';
import { planFor, stateOf, targetState, untilState } from '../../plan.ts';
import type { Refit } from '../../refit.ts';
import type { Scene } from '../../scene.ts';
import { after } from './next-release.ts';

/** What `refit status` says about the deleted worker. */
const WITHOUT = /skipped: w2/;

/** Room for Refit and for three binaries of k0s. */
const DISK_MIB = 1200;
/** What the agent says about a download that does not fit. */
const FULL = /has \d+ bytes free, the download needs \d+/;

/** Makes /usr/local of one worker a disk of its own, and fills it. */
export async function fullDisk(scene: Scene, refit: Refit, version: string): Promise<void> {
  const { cluster, checks } = scene;
  const next = scene.later.at(-1)?.version ?? '';
  const machine = cluster.named('w3');
  await cluster.forget();
  await giveDisk(machine);
  await refit.startAgents([machine]);
  await cluster.settled(version);
  await machine.must(
    'fallocate -l $(( $(df --output=avail -B1 /usr/local | tail -n 1) - 100000000 )) /usr/local/full',
  );
  await checks.check(
    'a full disk: the node fails before it is changed, and refit why says why',
    async () => {
      await cluster.apply(planFor(scene, next, { id: 'w3', controllers: [], workers: ['w3'] }));
      let said = '';
      await until('refit why to name the full disk', 300, async () => {
        said = (await refit.command('why', 'w3')).stdout;
        return FULL.test(said);
      }).catch(() => undefined);
      return [
        ...(FULL.test(said) ? [] : [`refit why w3 says: ${said}`]),
        ...(await cluster.unsettled(version)),
        ...(await cluster.left()),
      ];
    },
  );
  await checks.check('a full disk: when there is room, refit retry upgrades the node', async () => {
    await machine.must('rm /usr/local/full');
    // A plan that asks before its first node has not failed: it starts by itself.
    if ((await stateOf(scene)) === 'ApplyFailed') await refit.command('retry', 'w3');
    await untilState(scene, ['Completed']);
    const found = await cluster.versionOn(machine);
    return found === next ? await cluster.left() : [`w3 runs ${found}`];
  });
  await checks.check('a full disk: refit rollback takes the node back', async () => {
    const { ok, stdout, stderr } = await refit.command(
      'rollback',
      'autopilot',
      '--reason',
      'once more',
      '--yes',
    );
    if (!ok) return [stdout + stderr];
    await cluster.settled(version);
    return await cluster.left();
  });
}

async function giveDisk(machine: Machine): Promise<void> {
  await machine.must(
    `systemctl stop refit-agent; systemctl stop k0s; cp -a /usr/local /tmp/kept
     mount -t tmpfs -o mode=755,size=${DISK_MIB}m tmpfs /usr/local && cp -a /tmp/kept/. /usr/local/ && rm -r /tmp/kept`,
  );
  await startK0s(machine);
}

/**
 * The leader and the agent of a controller live an hour in the future. In the past they would not trust the certificates
 * of this cluster, which is younger than an hour. For the leader, every worker lives an hour in the past. The agent of a
 * worker keeps its clock, because here the kubelet of its host cannot get the same wrong clock.
 */
export async function wrongClock(scene: Scene, refit: Refit, version: string): Promise<string> {
  const { cluster } = scene;
  const next = after(scene, version);
  await cluster.forget();
  const machine = cluster.named('c1');
  // Only the leader with the wrong clock runs, so that it leads all the time.
  await refit.stopControllers();
  await setClock(machine, '+1h');
  await refit.startControllers([machine]);
  await refit.startAgents([machine]);
  await upgradeAndCheck(scene, 'a host whose clock is an hour off', next, { id: 'clocks' });
  await setClock(machine, '');
  await refit.startControllers();
  await refit.startAgents([machine]);
  return next;
}

/** Lets the processes of Refit on a machine see another time of day. k0s itself keeps the right time. */
async function setClock(machine: Machine, offset: string): Promise<void> {
  const library = '$(echo /opt/parts/debian/usr/lib/*/faketime/libfaketime.so.1)';
  const lines =
    offset === ''
      ? ''
      : `export LD_PRELOAD=${library} FAKETIME=${offset} FAKETIME_DONT_FAKE_MONOTONIC=1\n`;
  await writeFile(join(machine.root, 'etc/refit.environment'), lines);
  for (const service of ['refit-controller', 'refit-agent'])
    await machine.must(`systemctl stop ${service}`);
}

/** Deletes a worker, its machine and its Node, before its turn. With `goneNodes: Skip` the plan goes on without it. */
export async function deletedWorker(scene: Scene, refit: Refit, version: string): Promise<string> {
  const { cluster, checks } = scene;
  const next = after(scene, version);
  const machine = cluster.named('w2');
  await cluster.forget();
  await cluster.apply({
    apiVersion: 'upgrade.refit.dev/v1alpha1',
    kind: 'UpgradePolicy',
    metadata: { name: 'comes-and-goes' },
    spec: { goneNodes: 'Skip' },
  });
  await checks.check(
    'a worker that is deleted: the plan ends without it, and says so',
    async () => {
      await cluster.apply(planFor(scene, next, { id: 'deleted' }));
      await until(
        'c1 to be done',
        300,
        async () => (await targetState(scene, 'c1')) === 'SignalCompleted',
      );
      await machine.powerOff();
      await cluster.kubectl('delete', 'node', 'w2');
      const state = await untilState(scene, ENDED, 900);
      const { stdout } = await refit.command('status');
      return [
        ...(state === 'Completed' ? [] : [`the plan is ${state}`]),
        ...(WITHOUT.test(stdout) ? [] : [`refit status says: ${stdout}`]),
      ];
    },
  );
  await machine.powerOn();
  await checks.check(
    'a worker that is deleted: when it comes back, another plan upgrades it',
    async () => {
      await until(
        'w2 to join again',
        300,
        async () => (await cluster.kubectl('get', 'node', 'w2')).ok,
      );
      await cluster.forget();
      await cluster.apply(planFor(scene, next, { id: 'returned' }));
      await untilState(scene, ['Completed']);
      await cluster.settled(next);
      return await cluster.left();
    },
  );
  return next;
}
