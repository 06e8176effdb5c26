/**
 * Tests docs/guides/cluster-api.md: follows the page on stand-in hosts and the real API server. A stand-in manager acts
 * as Cluster API.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type Cluster, startCluster } from '../../../sandbox/cluster/cluster.ts';
import { callHook } from '../../../sandbox/cluster/hook-caller.ts';
import { type Extension, prepareExtension } from '../../../sandbox/cluster/hook-extension.ts';
import {
  askCanUpdate,
  driveUpdate,
  writeDesired,
} from '../../../sandbox/cluster/machine-manager.ts';
import { createMachine, installMachines, joinNode } from '../../../sandbox/cluster/machines.ts';
import { payloadPath } from '../../../sandbox/cluster/served-versions.ts';
import { agentArguments, type Host } from '../../../sandbox/hosts/host.ts';
import { nodes } from '../../../src/kube/resources.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { uninstallMachines } from '../../support/capi/machine-cluster.ts';
import { testUnless } from '../../support/left-out.ts';
import { controlPlane, kubeconfigFor } from '../control-plane.ts';
import { WHY_KUBELETS_TOO_NEW } from '../since.ts';
import { type Block, blocksOf } from './blocks.ts';
import { ReaderShell } from './shell.ts';

const blocks = blocksOf('docs/guides/cluster-api.md');
const FROM = 'v1.36.1';
const TO = 'v1.36.2';
const WANTED = { machine: 'guide-machine', version: TO };
let directory = '';
let cluster: Cluster;
let extension: Extension;
let shell: ReaderShell;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-guide-'));
  const plane = { url: controlPlane().url, kubeconfig: kubeconfigFor };
  const hosts = { controllers: 0, workers: 1, agents: [], restartDelayMs: 300 };
  cluster = await startCluster({
    plane,
    directory: join(directory, 'cluster'),
    ...hosts,
    version: FROM,
    offers: [TO],
  });
  await installMachines(cluster.client, systemClock);
  const machine = { name: WANTED.machine, version: FROM, node: 'worker1', controlPlane: false };
  await joinNode(cluster.client, machine);
  await createMachine(cluster.client, machine);
  extension = await prepareExtension({
    cluster,
    directory,
    kubeconfig: await kubeconfigFor('capi'),
  });
  shell = await ReaderShell.open(join(directory, 'reader'), {
    KUBECONFIG: await kubeconfigFor('admin'),
  });
  await shell.command('kubectl', `exec ${controlPlane().kubectl} "$@"`);
});

afterAll(async () => {
  await shell[Symbol.asyncDispose]();
  await uninstallMachines(cluster.client);
  await cluster.client.delete(nodes, 'worker1');
  await cluster.stop();
  await rm(directory, { recursive: true });
});

/** Replaces the addresses and files in the text of the page by those of this test. */
async function adapted({ text }: Block): Promise<string> {
  const host = cluster.hosts[0] as Host;
  const kubelet = await kubeconfigFor({ node: host.name });
  const found = agentArguments(host, '').filter(
    (it) => !['', '--kubeconfig', '--object', 'node'].includes(it),
  );
  const replaced: readonly (readonly [string, string])[] = [
    ['/var/lib/k0s/kubelet.conf', `${kubelet} ${found.join(' ')} --unverified-downloads allow`],
    [
      '--address :9443',
      `--address ${new URL(extension.url).host} --kubeconfig ${await kubeconfigFor('capi')}`,
    ],
    ['/certs/managers.crt', join(directory, 'hooks', 'ca.crt')],
    ['/certs', join(directory, 'hooks')],
    [
      'https://mirror.example.com/{version}/{os}-{arch}/k0s',
      `${cluster.downloads.url}${payloadPath('{version}')}`,
    ],
  ];
  return replaced.reduce((all, [from, to]) => all.replaceAll(from, to), text);
}

function manager() {
  const { url, authority, client } = extension;
  const caller = { url, authority, client, protocol: 'h2' } as const;
  return { client: cluster.client, caller, clock: systemClock, onCall: () => undefined };
}

test('the Cluster API guide has exactly the four steps that the test follows', () => {
  expect(blocks.map(({ use }) => use)).toEqual(['worker', 'run', 'service', 'run']);
});

test.each(blocks.slice(0, -1))('$title', async (block) => {
  const text = await adapted(block);
  await shell.follow({ ...block, text, use: block.use === 'worker' ? 'service' : block.use });
  expect(shell.ended).toEqual([]);
});

testUnless(WHY_KUBELETS_TOO_NEW)(
  'after the steps of the guide, a Machine gets a new version, and refit status follows the update',
  async () => {
    const { caller } = manager();
    const discover = async (): Promise<void> =>
      expect(await callHook(caller, 'Discovery', {})).toMatchObject({ status: 'Success' });
    await vi.waitFor(discover, { timeout: 150_000, interval: 250 });
    expect(await askCanUpdate(manager(), WANTED)).toEqual([]);
    await writeDesired(manager(), WANTED);
    const [, status] = await Promise.all([
      driveUpdate(manager(), WANTED),
      shell.run(blocks.at(-1)?.text ?? ''),
    ]);
    expect(status).toMatchObject({ code: 0 });
    expect(await cluster.hosts[0]?.version()).toBe(TO);
    expect(shell.ended).toEqual([]);
  },
);
