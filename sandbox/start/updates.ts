/**
 * Shows a cluster that upgrades itself: its own update server publishes two releases on a channel, one after the other.
 */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { plans } from '../../src/api/autopilot/plan.ts';
import { updateConfigs } from '../../src/api/autopilot/update-config.ts';
import { plainOutput } from '../../src/cli/output.ts';
import { showUpdates } from '../../src/cli/updates/updates-command.ts';
import { runBundle } from '../../src/cmd/update-server-command.ts';
import { ifFound } from '../../src/kube/status-error.ts';
import { statusOf } from '../../src/updates/status.ts';
import { systemClock as clock, sleep } from '../../src/util/clock.ts';
import { EXIT } from '../../src/util/errors.ts';
import { freePort } from '../../tools/controlplane/ports.ts';
import type { Cluster } from '../cluster/cluster.ts';
import type { Plane } from '../cluster/plane.ts';
import type { Ground } from './demonstration.ts';
import { follow } from './follow.ts';

/** Settings of the cluster's controllers: they read the channel every second, over plain HTTP on this machine. */
export const FOLLOWING = {
  environment: { K0S_UPDATE_PERIOD: '1s' },
  flags: ['--insecure-updates'],
} as const;

const POLL_MS = 100;
const ALWAYS = {
  type: 'periodic' as const,
  periodic: { days: [], startTime: '00:00', length: '24h' },
};

/** Publishes the releases one after the other, and follows each Plan that a release causes. */
export async function showReleases(
  cluster: Cluster,
  plane: Plane,
  { releases, concurrent }: { readonly releases: readonly string[]; readonly concurrent: number },
  ground: Ground,
): Promise<number> {
  const { abort, say, directory } = ground;
  const port = await freePort();
  const server = `http://127.0.0.1:${port}`;
  const served = join(directory, 'releases');
  const publish = async (count: number): Promise<void> => {
    const offered = releases.slice(0, count);
    const files = (version: string) => [
      { platform: 'linux-amd64', k0s: join(directory, 'payloads', version) },
    ];
    const bundle = {
      releases: offered.map((version) => ({ version, files: files(version) })),
      channels: { stable: offered.map((version) => ({ version })) },
    };
    const file = join(directory, 'bundle.yaml');
    await writeFile(file, JSON.stringify(bundle));
    await runBundle(served, { file }, { write: say, abort });
  };
  for (const [index, version] of releases.entries()) {
    say(`\nPublishing ${version} on channel stable:`);
    await publish(index + 1);
    if (index === 0) {
      await cluster.startServer('update-server', [served, '--address', `127.0.0.1:${port}`]);
      await createConfig(cluster, server, concurrent);
    }
    await until(async () => (await planned(cluster, abort)) === version, abort);
    say('The cluster has found it and created its own Plan.\n');
    const { code } = await follow(await plane.kubeconfig('viewer'), ground, cluster.apiPort);
    if (code !== EXIT.ok) return code;
  }
  const state = async () =>
    statusOf(await cluster.client.get(updateConfigs, 'stable', { abort }))?.reason;
  await until(async () => (await state()) === 'UpToDate', abort);
  say('');
  const flags = { kubeconfig: await plane.kubeconfig('viewer'), output: 'text' } as const;
  await showUpdates(flags, { clock, output: plainOutput, abort });
  return EXIT.ok;
}

async function createConfig(
  { client }: Cluster,
  updateServer: string,
  concurrent: number,
): Promise<void> {
  const all = { discovery: { selector: {} } };
  const targets = { controllers: all, workers: { ...all, limits: { concurrent } } };
  const apiVersion = 'autopilot.k0sproject.io/v1beta2';
  const kind = 'UpdateConfig';
  const spec = {
    updateServer,
    upgradeStrategy: ALWAYS,
    planSpec: { commands: [{ k0supdate: { targets } }] },
  };
  await client.create(updateConfigs, { apiVersion, kind, metadata: { name: 'stable' }, spec });
}

async function planned({ client }: Cluster, abort: AbortSignal): Promise<string | undefined> {
  const plan = await ifFound(client.get(plans, 'autopilot', { abort }));
  return plan?.spec.commands[0]?.k0supdate?.version;
}

async function until(isSo: () => Promise<boolean>, abort: AbortSignal): Promise<void> {
  while (!(await isSo())) await sleep(clock, POLL_MS, abort);
}
