/** Tests that a Machine's node is drained before its service is touched: real pods, a real budget, the documented user. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { Host } from '../../sandbox/hosts/host.ts';
import type { UpdateMachineResponse } from '../../src/api/capi/hooks.ts';
import { cordonOwner } from '../../src/drain/cordon-marks.ts';
import { nodes, type Pod, pods } from '../../src/kube/resources.ts';
import { type MachineCluster, openMachineCluster, TO } from '../support/capi/machine-cluster.ts';
import { apply, kubectlAs } from './control-plane.ts';
import { Workloads } from './drain-workloads.ts';

const PATIENCE = { timeout: 150_000, interval: 200 };
const NAMESPACE = 'default';
/** The node that receives the pods of the other two nodes. */
const SPARE = 'worker3';
let scene: MachineCluster;

beforeAll(async () => {
  scene = await openMachineCluster({ workers: 3, played: true });
  await scene.whenCallable('h2');
});

afterAll(async () => {
  // The pods must be deleted first, because nothing ends them when their Nodes are gone.
  const all = ['deployment,poddisruptionbudget', '--all', '-n', NAMESPACE];
  await kubectlAs('admin', ['delete', ...all, '--cascade=foreground']);
  await scene[Symbol.asyncDispose]();
});

async function setCordon(name: string, unschedulable: boolean | null): Promise<void> {
  await scene.cluster.client.patch(nodes, name, { spec: { unschedulable } }, { type: 'merge' });
}

async function podsOn(node: string): Promise<Pod[]> {
  const { items } = await scene.cluster.client.list(pods, {
    fieldSelector: `spec.nodeName=${node}`,
  });
  return items.filter(({ status }) => status?.phase === 'Running');
}

async function setBudget(minAvailable: number): Promise<void> {
  const budget = new Workloads(NAMESPACE, '').budget('web', 'web', { minAvailable });
  await apply(JSON.stringify(budget));
}

function hostOf(name: string): Host {
  return scene.cluster.hosts.find((host) => host.name === name) as Host;
}

test('pods go first; the caller learns which budget blocks one, and the Machine continues when it allows the eviction', async () => {
  for (const name of ['worker2', SPARE]) await setCordon(name, true);
  const spec = { nodeSelector: { 'kubernetes.io/os': 'linux' } };
  await apply(
    JSON.stringify(new Workloads(NAMESPACE, '').of('Deployment', 'web', { replicas: 2 }, { spec })),
  );
  await setBudget(2);
  await vi.waitFor(async () => expect(await podsOn('worker1')).toHaveLength(2), PATIENCE);

  const words: string[] = [];
  const told = (answer: UpdateMachineResponse | Error): void => {
    if (!(answer instanceof Error)) words.push(answer.message ?? '');
  };
  const updated = scene.update('worker1', scene.manager('h2', told));
  const endedEarly = updated.then(() => expect.fail('the update ended before its drain'));
  const tells = async (pattern: RegExp): Promise<void> =>
    await Promise.race([
      vi.waitFor(() => expect(words.at(-1)).toMatch(pattern), PATIENCE),
      endedEarly,
    ]);

  // This budget allows no eviction. The node is cordoned nevertheless, because an operator could change the budget then.
  await tells(
    /^2 pods are left on node worker1 .*PodDisruptionBudget default\/web blocks .*: it wants 2 of its 2 pods healthy at all times \(minAvailable: 2\)/,
  );
  expect(cordonOwner(await scene.cluster.client.get(nodes, 'worker1'))).toBeDefined();

  // Now it allows one eviction. The replacement cannot be scheduled, so the other pod stays.
  await setBudget(1);
  const held =
    /^1 pod is left on node worker1 \(default\/web-\S+\): PodDisruptionBudget default\/web blocks default\/web-\S+: it needs 1 healthy pods and has 1 currently$/;
  await tells(held);
  expect(cordonOwner(await scene.cluster.client.get(nodes, 'worker1'))).toBeDefined();

  // The next process starts the drain again and reports the same.
  process.kill(scene.running.pid, 'SIGKILL');
  scene.running = await scene.extension.start('extension-again');
  await scene.whenCallable('h2');
  const before = words.length;
  await vi.waitFor(() => expect(words.length).toBeGreaterThan(before), PATIENCE);
  await tells(held);
  expect(hostOf('worker1').starts).toBe(1);
  expect(await podsOn('worker1')).toHaveLength(1);

  await setCordon(SPARE, null);
  await updated;
  expect(await hostOf('worker1').version()).toBe(TO);
  expect(await podsOn('worker1')).toEqual([]);
  await vi.waitFor(async () => expect(await podsOn(SPARE)).toHaveLength(2), PATIENCE);
});

test('the node is uncordoned, and our mark removed', async () => {
  await vi.waitFor(async () => {
    const node = await scene.cluster.client.get(nodes, 'worker1');
    expect([node.spec?.unschedulable, cordonOwner(node), node.spec?.taints]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  }, PATIENCE);
});

test('a node with a foreign cordon stays cordoned', async () => {
  await scene.update('worker2', scene.manager('h2'));
  const node = await scene.cluster.client.get(nodes, 'worker2');
  expect([
    node.status?.nodeInfo?.kubeletVersion,
    node.spec?.unschedulable,
    cordonOwner(node),
  ]).toEqual([TO, true, undefined]);
});

test('the caller learns that a policy waits', async () => {
  const policy = {
    apiVersion: 'upgrade.refit.dev/v1alpha1',
    kind: 'UpgradePolicy',
    metadata: { name: 'machines' },
    spec: { plans: [{ dialect: 'capi', name: SPARE }], paused: true },
  };
  await apply(JSON.stringify(policy));
  const words: string[] = [];
  const updated = scene.update(
    SPARE,
    scene.manager(
      'h2',
      (answer) => void (answer instanceof Error || words.push(answer.message ?? '')),
    ),
  );
  await vi.waitFor(() => expect(words.at(-1)).toContain('UpgradePolicy machines'), PATIENCE);
  const covers = ['get', 'upgradepolicy', 'machines', '-o', 'jsonpath={.status.covers}'];
  await vi.waitFor(
    async () => expect((await kubectlAs('admin', covers)).stdout).toBe(`["capi/${SPARE}"]`),
    PATIENCE,
  );
  await kubectlAs('admin', ['delete', 'upgradepolicy', 'machines']);
  await updated;
  expect(await hostOf(SPARE).version()).toBe(TO);
});
