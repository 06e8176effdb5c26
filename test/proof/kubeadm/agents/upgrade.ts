/**
 * Tests an upgrade by agents on the machines. The extension for Cluster API controls the upgrade, as
 * docs/guides/cluster-api.md describes.
 */
import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { parse, stringify } from 'yaml';
import {
  type MachineUpdate,
  recordOf,
  UPDATE_ANNOTATION,
  updateOn,
} from '../../../../src/dialects/capi/plan/machine-update.ts';
import { platformOf } from '../../../../src/engine/snapshot/gather.ts';
import type { Node } from '../../../../src/kube/resources.ts';
import { procedureOf } from '../../../../src/signal/agent-presence.ts';
import { rfc3339, systemClock } from '../../../../src/util/clock.ts';
import type { Machine } from '../../machines/machine.ts';
import { until } from '../../wait.ts';
import type { Scene } from '../upgrade.ts';
import { settled, verify } from '../verify.ts';
import { AGENT_LOG, furnishAgent, listOffers, MIRROR, START_AGENT, serve } from './agent.ts';
import { extensionFor, type RunningExtension, runExtension } from './extension.ts';

export const JOURNAL = '/var/lib/refit/kubeadm.journal';

export async function upgradeByAgents(scene: Scene): Promise<void> {
  const { cluster, operator, checks, to } = scene;
  const { machines, workers } = cluster;
  const [first, ...others] = machines;
  if (first === undefined) throw new Error('a proof needs a control plane');
  await settled(cluster, operator);
  const { folder, sha256 } = await listOffers(first, to);
  const server = await serve(folder);
  const extension = await startExtension(scene, first);
  try {
    for (const machine of machines) {
      await furnishAgent(machine, operator.refit);
      await machine.must(START_AGENT);
    }
    await checks.check('each agent is there, and is for kubeadm', async () => {
      const all = async () =>
        await Promise.all(machines.map(async ({ name }) => await nodeOf(scene, name)));
      await until('the agents', 120, async () =>
        (await all()).every((node) => procedureOf(node) === 'kubeadm'),
      );
      return [];
    });
    await configure(scene);
    await checks.check(
      `${first.name}: its agent is killed while kubeadm works, and started again`,
      async () => {
        await request(scene, first.name, 'controller', sha256);
        await until('kubeadm to begin', 300, async () =>
          (await textOf(first, JOURNAL)).includes(' kubeadm begun'),
        );
        await first.must('kill -KILL "$(cat /run/refit-agent.pid)"');
        await first.must(START_AGENT);
        const wrong = await ended(scene, first.name);
        return (await textOf(first, AGENT_LOG)).includes('resuming')
          ? wrong
          : [...wrong, 'the next agent did not resume'];
      },
    );
    for (const machine of others)
      await checks.check(`${machine.name}: its agent upgrades it`, async () => {
        await request(
          scene,
          machine.name,
          workers.includes(machine) ? 'worker' : 'controller',
          sha256,
        );
        return await ended(scene, machine.name);
      });
    await verify('after the agents', checks, cluster, operator, to);
  } finally {
    for (const machine of machines)
      await operator.keep([`agent-${machine.name}`], await textOf(machine, AGENT_LOG));
    await extension.stop();
    await operator.keep(['extension'], extension.said());
    server.close();
  }
}

/** Starts the extension with the rights that its guide describes. */
export async function startExtension(
  { operator }: Scene,
  first: Machine,
): Promise<RunningExtension> {
  const directory = dirname(operator.manifest);
  const crds = ['upgradepolicies', 'updatersets'].map(
    (name) => `deploy/crds/upgrade.refit.dev_${name}.yaml`,
  );
  const files = ['deploy/rbac-capi.yaml', ...crds].flatMap((file) => ['-f', file]);
  await operator.administer('apply', ...files);
  const kubeconfig = join(directory, 'refit-capi.conf');
  const user = await first.must(
    'kubeadm kubeconfig user --client-name refit-capi --config /etc/kubeadm.yaml',
  );
  await writeFile(kubeconfig, user);
  return runExtension(operator.refit, (await extensionFor(directory, kubeconfig)).commandLine);
}

export const textOf = async ({ root }: Machine, path: string) =>
  await readFile(join(root, path), 'utf8').catch(() => '');
export const nodeOf = async ({ operator }: Scene, name: string) =>
  await operator.get<Node>('node', name);

/** Sets the new version in `kubeadm-config`, as Cluster API does before it updates the first control plane. */
export async function configure({ operator, to }: Scene): Promise<void> {
  const { data } = await operator.get<{ data: { ClusterConfiguration: string } }>(
    'configmap',
    'kubeadm-config',
  );
  const configuration = { ...(parse(data.ClusterConfiguration) as object), kubernetesVersion: to };
  const patch = JSON.stringify({ data: { ClusterConfiguration: stringify(configuration) } });
  await operator.administer(
    '-n',
    'kube-system',
    'patch',
    'configmap',
    'kubeadm-config',
    '--type=merge',
    '-p',
    patch,
  );
}

/** Requests the update of a node, as the hook UpdateMachine does. */
export async function request(
  scene: Scene,
  name: string,
  role: MachineUpdate['role'],
  sha256: string,
): Promise<void> {
  const platform = platformOf(await nodeOf(scene, name)) ?? '';
  const what = { uid: randomUUID(), machine: `default/${name}`, version: scene.to, role, platform };
  const where = { requested: rfc3339(systemClock.now()), url: `${MIRROR}/SHA256SUMS`, sha256 };
  const update: MachineUpdate = { ...what, ...where, procedure: 'kubeadmupdate' };
  await scene.operator.administer(
    'annotate',
    'node',
    name,
    `${UPDATE_ANNOTATION}=${JSON.stringify(update)}`,
  );
}

/**
 * Waits for the end of the update, and returns what is wrong with it. An API server may be unavailable during the wait.
 */
export async function ended(scene: Scene, name: string): Promise<string[]> {
  let record: ReturnType<typeof recordOf>;
  await until(`the update of ${name} to end`, 600, async () => {
    const node = await nodeOf(scene, name).catch(() => undefined);
    const update = node && updateOn(node);
    record = update && recordOf(node, update);
    return record?.phase === 'done' || record?.phase === 'failed';
  });
  return record?.phase === 'done' ? [] : [record?.reason?.message ?? 'it failed'];
}
