/** Tests both updaters of Refit behind one extension on a real API server: files of a KubeadmConfig first, then the version. */
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { askCanUpdate, driveUpdate, writeDesired } from '../../sandbox/cluster/machine-manager.ts';
import type { UpdateMachineResponse } from '../../src/api/capi/hooks.ts';
import { updaterSets } from '../../src/api/refit/updater-set.ts';
import { nodes } from '../../src/kube/resources.ts';
import { configurableOn } from '../../src/signal/agent-presence.ts';
import { configurationRequestOn } from '../../src/signal/node-configuration.ts';
import { buildUpdaterSet } from '../support/builders/updater-sets.ts';
import {
  type MachineCluster,
  machineOf,
  openMachineCluster,
  TO,
} from '../support/capi/machine-cluster.ts';
import { apply, kubeconfigFor } from './control-plane.ts';
import { runRefit } from './refit-process.ts';

const NAME = 'capi-configuration';
const PATIENCE = { timeout: 150_000, interval: 200 };
const machine = machineOf('worker1');
const wanted = (content: string, path = '/etc/demo/x') => ({
  machine,
  version: TO,
  files: [{ path, content }],
});

let scene: MachineCluster;
let root = '';

beforeAll(async () => {
  await apply(await readFile('deploy/crds/upgrade.refit.dev_updatersets.yaml', 'utf8'));
  scene = await openMachineCluster({
    workers: 1,
    agentFlags: ['--node-configuration', '/etc/demo'],
  });
  root = join(scene.cluster.hosts[0]?.directory ?? '', 'root');
  await mkdir(join(root, 'etc/demo'), { recursive: true });
  const own = { name: 'configuration', nodeConfiguration: {} };
  const set = buildUpdaterSet(NAME, [own, { name: 'refit', refit: {} }], { uncovered: 'Refuse' });
  await scene.cluster.client.create(updaterSets, set);
  await scene.whenCallable('h2');
  await vi.waitFor(
    async () =>
      expect(configurableOn(await scene.cluster.client.get(nodes, 'worker1'))).toEqual([
        '/etc/demo',
      ]),
    PATIENCE,
  );
});

afterAll(async () => {
  await scene.cluster.client.delete(updaterSets, NAME);
  await scene[Symbol.asyncDispose]();
});

const read = async (): Promise<string | undefined> =>
  await readFile(join(root, 'etc/demo/x'), 'utf8').catch(() => undefined);

test('Refit refuses an update with a file that no agent may change, and names the field', async () => {
  const asked = askCanUpdate(scene.manager('h2'), wanted('two', '/etc/other'));
  await expect(asked).rejects.toThrow(
    /refused, because it covers machine.spec.version \(refit\); not covered: bootstrap.spec.files$/,
  );
});

test('file, then version, although extension and agent are killed: neither is left out', async () => {
  const { client, agents, hosts } = scene.cluster;
  const words: string[] = [];
  const work: Promise<unknown>[] = [];
  let kills = 0;
  const heard = (answer: UpdateMachineResponse | Error): void => {
    if (answer instanceof Error) return;
    words.push(answer.message ?? 'done');
    if (kills >= 2) return;
    kills++;
    process.kill(scene.running.pid, 'SIGKILL');
    work.push(
      scene.extension.start(`extension-${kills}`).then((next) => {
        scene.running = next;
      }),
    );
    const [host] = hosts;
    if (kills === 1 && host) work.push(restartAgent(host));
  };
  const restartAgent = async (host: (typeof hosts)[number]): Promise<void> => {
    const agent = agents.get(host.name);
    if (agent) process.kill(agent.pid, 'SIGKILL');
    await agent?.stop();
    await scene.cluster.startAgent(host);
  };
  const manager = scene.manager('h2', heard);
  expect(await askCanUpdate(manager, wanted('two'))).toEqual([]);
  await writeDesired(manager, wanted('two'));
  await driveUpdate(manager, wanted('two'));
  await Promise.all(work);
  expect(await read()).toBe('two\n');
  expect(await hosts[0]?.version()).toBe(TO);
  const first = words.findIndex((text) => text.startsWith('node worker1'));
  expect(words.slice(first).some((text) => text.startsWith('updater configuration'))).toBe(false);
  expect(configurationRequestOn(await client.get(nodes, 'worker1'))?.items).toHaveLength(1);
});

test('an update of a file alone restarts no service and drains no node', async () => {
  const { client, hosts } = scene.cluster;
  const starts = hosts[0]?.starts;
  const manager = scene.manager('h2');
  expect(await askCanUpdate(manager, wanted('three'))).toEqual([]);
  await driveUpdate(manager, wanted('three'));
  expect(await read()).toBe('three\n');
  expect(hosts[0]?.starts).toBe(starts);
  expect((await client.get(nodes, 'worker1')).spec?.unschedulable).toBeFalsy();
});

test('a folder that is missing: the update fails with the reason, and goes on once it is none', async () => {
  const manager = scene.manager('h2');
  const there = wanted('four', '/etc/demo/missing/x');
  expect(await askCanUpdate(manager, there)).toEqual([]);
  await expect(driveUpdate(manager, there)).rejects.toThrow(
    /updater configuration: node worker1: .*etc\/demo\/missing.*; to try again, run: refit retry worker1$/,
  );
  await mkdir(join(root, 'etc/demo/missing'));
  expect(
    await runRefit('retry', machine, '--kubeconfig', await kubeconfigFor('operator')),
  ).toMatchObject({ code: 0 });
  await driveUpdate(manager, there);
  expect(await readFile(join(root, 'etc/demo/missing/x'), 'utf8')).toBe('four\n');
});
