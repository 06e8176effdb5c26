/**
 * Tests on a real API server that the Machines of one MachineDeployment are one plan: the shipped extension finds their
 * owner with its documented rights, holds their waves, and waits before a Machine is marked.
 */
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { askWhatIsLeft, driveUpdate, writeDesired } from '../../sandbox/cluster/machine-manager.ts';
import { createDeployment, setOf } from '../../sandbox/cluster/machines.ts';
import { machines, SET_LABELS } from '../../src/api/capi/machine.ts';
import { nodeRollouts, upgradePolicies } from '../../src/api/kinds.ts';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import { nodes } from '../../src/kube/resources.ts';
import { decodeSignal } from '../../src/signal/annotations.ts';
import { rfc3339 } from '../../src/util/clock.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import {
  type MachineCluster,
  machineOf,
  openMachineCluster,
  TO,
} from '../support/capi/machine-cluster.ts';
import { kubeconfigFor } from './control-plane.ts';
import { runRefit } from './refit-process.ts';

const PATIENCE = { timeout: 150_000, interval: 200 };
const OWNER = 'workers';
const NODES = ['worker1', 'worker2', 'worker3'] as const;
const MERGE = { type: 'merge', namespace: 'default' } as const;

let scene: MachineCluster;

beforeAll(async () => {
  scene = await openMachineCluster({ workers: NODES.length });
  await scene.running.stop();
  const [, ...flags] = scene.extension.commandLine;
  const owned = [...flags, '--rollouts', 'owner'];
  scene.running = await scene.cluster.startLeading('extension-owner', 'capi-extension', owned);
  await scene.whenCallable('h2');
  const { client } = scene.cluster;
  await createDeployment(client, OWNER, TO);
  const ownerReferences = [await setOf(client, OWNER)];
  const labels = { [SET_LABELS.deployment]: OWNER };
  for (const node of NODES)
    await client.patch(machines, machineOf(node), { metadata: { labels, ownerReferences } }, MERGE);
});
afterAll(async () => await scene[Symbol.asyncDispose]());

const wantedOf = (node: string) => ({ machine: machineOf(node), version: TO });

async function govern(spec: UpgradePolicySpec): Promise<() => Promise<void>> {
  const { client } = scene.cluster;
  const name = 'of-owners';
  const plans = [{ dialect: 'capi' as const, namespace: 'default', name: OWNER }];
  await client.create(upgradePolicies, buildUpgradePolicy(name, { ...spec, plans }));
  return async () => {
    await client.delete(upgradePolicies, name);
  };
}

async function refit(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runRefit(
    ...args,
    '--kubeconfig',
    await kubeconfigFor('admin'),
  );
  expect(stderr).toEqual([]);
  expect(code).toBe(0);
  return stdout.join('\n');
}

async function isStarted(node: string): Promise<boolean> {
  const { metadata } = await scene.cluster.client.get(nodes, node);
  return decodeSignal(metadata.annotations) !== undefined;
}

const rolloutOf = async () =>
  (await scene.cluster.client.get(nodeRollouts, `capi-${OWNER}`, { namespace: 'default' })).status;

test('while a blackout applies, the extension says so before a Machine is marked, and nothing is written', async () => {
  const from = rfc3339(Date.now() - 60_000);
  const to = rfc3339(Date.now() + 3_600_000);
  const end = await govern({ blackouts: [{ from, to }] });
  const asked = async () => await askWhatIsLeft(scene.manager('h2'), wantedOf('worker1'));
  await vi.waitFor(
    async () =>
      await expect(asked()).rejects.toThrow(/^MachineDeployment workers waits: .*blackout/),
    PATIENCE,
  );
  const { metadata } = await scene.cluster.client.get(nodes, 'worker1');
  expect(Object.keys(metadata.annotations ?? {})).not.toContain('upgrade.refit.dev/machine-update');
  await end();
  await vi.waitFor(async () => expect((await asked()).uncovered).toEqual([]), PATIENCE);
});

test('the first wave has one of three Machines, and the second one waits for its approval', async () => {
  onTestFinished(await govern({ waves: [{ percent: 10 }, { approval: 'Manual' }] }));
  const manager = scene.manager('h2');
  await scene.update('worker1', manager);
  await vi.waitFor(
    async () =>
      expect((await rolloutOf())?.counts).toMatchObject({ total: 3, done: 1, pending: 2 }),
    PATIENCE,
  );
  const words: string[] = [];
  const hearing = scene.manager('h2', (answer) =>
    words.push(answer instanceof Error ? answer.message : (answer.message ?? '')),
  );
  await writeDesired(manager, wantedOf('worker2'));
  const second = driveUpdate(hearing, wantedOf('worker2'));
  await vi.waitFor(
    () => expect(words.join()).toContain('wave 2 needs approval by UpgradePolicy of-owners'),
    PATIENCE,
  );
  expect(await isStarted('worker2')).toBe(false);
  await refit('approve', `capi/default/${OWNER}`, '--wave', '2', '--reason', 'canary is good');
  await second;
  await scene.update('worker3', manager);
  await vi.waitFor(async () => expect((await rolloutOf())?.phase).toBe('done'), PATIENCE);
  const status = await rolloutOf();
  expect(status?.counts).toMatchObject({ total: 3, done: 3 });
  expect(status?.history).toHaveLength(1);
});
