/** A cluster that follows a channel of `refit serve` through five releases, while its leaders are killed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { sleep, systemClock } from '../../../../src/util/clock.ts';
import { applyManifest } from '../../../../tools/controlplane/apply.ts';
import { must } from '../../../../tools/release/commands.ts';
import { OPERATOR } from '../../machines/namespaces.ts';
import { until } from '../../wait.ts';
import { AuditLogs } from '../observe/audit.ts';
import { watchHosts } from '../observe/hosts.ts';
import type { Release } from '../options.ts';
import { outOfOrder } from '../outcome.ts';
import { Refit } from '../refit.ts';
import type { Scene } from '../scene.ts';

const DEPLOY = join(import.meta.dirname, '../../../../deploy');
const PORT = 8001;
const CONCURRENT = 2;

export async function followChannel(scene: Scene): Promise<void> {
  const { cluster, checks, to, later } = scene;
  const refit = new Refit(cluster, scene.refit);
  await refit.install();
  const rights = await readFile(join(DEPLOY, 'rbac-updates.yaml'), 'utf8');
  await applyManifest(cluster.kubeconfig, rights);
  await cluster.reset(to, 'off');
  const folder = join(cluster.directory, 'updates');
  await mkdir(folder);
  await publish(scene, folder, [to]);
  await using things = new AsyncDisposableStack();
  things.use(serve(scene, folder));
  // The leader asks the channel more often than the ten minutes that are usual.
  await refit.setUp({ environment: 'export K0S_UPDATE_PERIOD=10s', flags: '--insecure-updates' });
  await refit.startControllers();
  await refit.startAgents(cluster.machines);
  await cluster.apply(updateConfig());
  let before = to;
  for (const release of later) {
    await follow(scene, refit, release, {
      publish: async () => await publish(scene, folder, [before, release]),
    });
    before = release;
  }
  await checks.check('refit updates says that the newest release is installed', async () => {
    let said = '';
    await until('refit updates to say UpToDate', 120, async () => {
      said = (await refit.command('updates')).stdout;
      return /UpToDate|up to date|newest/i.test(said);
    }).catch(() => undefined);
    return /UpToDate|up to date|newest/i.test(said) ? [] : [said];
  });
  await refit.stop();
}

const updateConfig = (): object => ({
  apiVersion: 'autopilot.k0sproject.io/v1beta2',
  kind: 'UpdateConfig',
  metadata: { name: 'stable' },
  spec: {
    channel: 'stable',
    updateServer: `http://${OPERATOR}:${PORT}`,
    upgradeStrategy: {
      type: 'periodic',
      periodic: { days: [], startTime: '00:00', length: '24h' },
    },
    planSpec: {
      commands: [
        {
          k0supdate: {
            targets: {
              controllers: { discovery: { selector: {} } },
              workers: { discovery: { selector: {} }, limits: { concurrent: CONCURRENT } },
            },
          },
        },
      ],
    },
  },
});

/** `refit bundle`, as the guide describes it. */
async function publish(
  { refit }: Scene,
  folder: string,
  releases: readonly Release[],
): Promise<void> {
  const file = join(folder, 'bundle.yaml');
  const bundle = {
    releases: releases.map(({ version, executable }) => ({
      version,
      files: [{ platform: 'linux-amd64', k0s: executable }],
    })),
    channels: { stable: releases.map(({ version }) => ({ version })) },
  };
  await writeFile(file, stringify(bundle));
  await must(refit, ['bundle', '-f', file, join(folder, 'releases')]);
}

function serve({ refit, cluster }: Scene, folder: string): AsyncDisposable {
  const words = [
    'serve',
    join(folder, 'releases'),
    '--address',
    `${OPERATOR}:${PORT}`,
    '--host',
    OPERATOR,
  ];
  const child: ChildProcess = spawn(refit, words, {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, KUBECONFIG: cluster.kubeconfig },
  });
  return {
    [Symbol.asyncDispose]: async () => {
      if (child.exitCode !== null) throw new Error(`refit serve had ended with ${child.exitCode}`);
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
    },
  };
}

/** Publishes the release, waits until every host runs it, and kills leaders meanwhile. */
async function follow(
  scene: Scene,
  refit: Refit,
  { version }: Release,
  { publish: published }: { readonly publish: () => Promise<void> },
): Promise<void> {
  const { cluster, checks, log } = scene;
  // The leader may signal the first node as soon as the release is published.
  const audit = new AuditLogs(cluster.controllers);
  await using watched = watchHosts(cluster, CONCURRENT);
  await published();
  let kills = 0;
  await checks.check(`the channel offers ${version}: every host runs it`, async () => {
    const ended = systemClock.monotonic() + 600_000;
    let wrong = ['nothing was looked at'];
    while (wrong.length > 0 && systemClock.monotonic() < ended) {
      await sleep(systemClock, randomInt(5000, 20_000));
      if (await killLeader(scene, refit)) kills++;
      wrong = await cluster.unsettled(version).catch((error: unknown) => [String(error)]);
    }
    return [...wrong, ...(wrong.length === 0 ? await cluster.left() : [])];
  });
  log(`${kills} leaders were killed`);
  await checks.check(
    `the channel offers ${version}: controllers first, never too many at once`,
    () => [
      ...watched.violations,
      ...outOfOrder(
        // The plan of the release before may still have run.
        audit.writes().filter(({ sent }) => JSON.stringify(sent ?? '').includes(version)),
        cluster.machines.map(({ name }) => name),
      ),
    ],
  );
}

/** Kills the controller of Refit that leads. Its identity in the Lease begins with the name of its host. */
async function killLeader({ cluster }: Scene, refit: Refit): Promise<boolean> {
  if (!(await refit.leads())) return false;
  const name = (await cluster.holder()).split('_')[0] ?? '';
  const machine = cluster.machines.find((each) => each.name === name);
  return (await machine?.run('kill -9 "$(cat /run/services/refit-controller.pid)"'))?.ok === true;
}
