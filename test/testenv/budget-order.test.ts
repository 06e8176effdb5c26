/** Tests `drain.startWith` of a policy on a real API server: the counted pods of real PodDisruptionBudgets decide which node starts next. */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { upgradePolicies } from '../../src/api/kinds.ts';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { podDisruptionBudgets, pods } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { installKinds, kubeconfigFor } from './control-plane.ts';
import { Puppets } from './puppets.ts';
import { RefitProcess, runRefit } from './refit-process.ts';

const POLICY = 'fewest-first';
const NAMESPACE = 'default';
const APP = 'budget-order';
/** The number of pods that the budget covers on each node. The plan lists the nodes in this order. */
const COVERED = { 'order-w1': 3, 'order-w2': 0, 'order-w3': 2, 'order-w4': 1 };
const FEWEST_FIRST = ['order-w2', 'order-w4', 'order-w3', 'order-w1'];

let admin: KubeClient;

beforeAll(async () => {
  await installKinds();
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
});
afterAll(() => admin.close());

async function applyPolicy(drain: NonNullable<UpgradePolicySpec['drain']>): Promise<void> {
  const plans = [{ dialect: 'autopilot' as const }];
  await admin.create(upgradePolicies, buildUpgradePolicy(POLICY, { plans, drain }));
  onTestFinished(async () => await admin.delete(upgradePolicies, POLICY));
}

async function createPod(name: string, nodeName: string, app: string): Promise<void> {
  const at = { namespace: NAMESPACE };
  const containers = [{ name: 'c', image: 'example.com/none' }];
  const metadata = { name, labels: { app } };
  const spec = { nodeName, terminationGracePeriodSeconds: 0, containers };
  await admin.create(pods, { metadata, spec }, at);
  onTestFinished(async () => {
    // The controller manager also deletes pods of nodes that are gone, so the pod may be missing.
    await admin.delete(pods, name, at).catch(() => undefined);
  });
}

/** Creates a budget that allows each eviction, the pods that it covers, and on `order-w2` pods that it does not cover. */
async function createWorkload(): Promise<void> {
  const at = { namespace: NAMESPACE };
  const selector = { matchLabels: { app: APP } };
  const spec = { selector, minAvailable: 0 };
  await admin.create(podDisruptionBudgets, { metadata: { name: APP }, spec }, at);
  onTestFinished(async () => await admin.delete(podDisruptionBudgets, APP, at));
  for (const [node, count] of Object.entries(COVERED))
    for (let index = 0; index < count; index++) await createPod(`${node}-${index}`, node, APP);
  for (let index = 0; index < 5; index++) await createPod(`free-${index}`, 'order-w2', 'free');
}

/** Lets each node complete as soon as it is signalled, and resolves with the nodes in the order of their signals. */
async function signalsOf(puppets: Puppets): Promise<string[]> {
  const order: string[] = [];
  while (order.length < puppets.names.length) {
    const left = puppets.names.filter((name) => !order.includes(name));
    const started: string[] = [];
    await puppets.until(async () => {
      for (const name of left) if (await puppets.signal(name)) started.push(name);
      expect(started).not.toEqual([]);
    });
    for (const name of started) await puppets.says(name, 'Completed');
    order.push(...started);
  }
  return order;
}

async function told(...args: readonly string[]): Promise<string> {
  const { stdout } = await runRefit(...args, '--kubeconfig', await kubeconfigFor('operator'));
  return stdout.join('\n');
}

test.each<[string, object, RegExp]>([
  [
    'another word',
    { startWith: 'MostPods' },
    /spec.drain.startWith: Unsupported value: "MostPods": supported values: "FewestBudgetPods"/,
  ],
  [
    'a policy that drains nothing',
    { startWith: 'FewestBudgetPods', enabled: false },
    /`startWith` needs a drain, but `enabled` is false/,
  ],
])('the API server refuses %s', async (_what, drain, refusal) => {
  const policy = buildUpgradePolicy(POLICY, { drain });
  await expect(admin.create(upgradePolicies, policy)).rejects.toThrow(refusal);
});

test('nodes start in the order of their numbers, as the preview shows before', async () => {
  await using puppets = await Puppets.create(admin, ...Object.keys(COVERED));
  await createWorkload();
  await applyPolicy({ startWith: 'FewestBudgetPods' });
  await puppets.plan(1);
  const preview = await told('preview');
  const batches = preview.matchAll(/batch \d +(\S+)/g);
  expect([...batches].map(([, name]) => name)).toEqual(FEWEST_FIRST);
  expect(preview.replaceAll(/\s+/g, ' ')).toContain(
    'those with the fewest pods covered by a PodDisruptionBudget now start first',
  );
  const { plans } = JSON.parse(await told('status', '-o', 'json')) as {
    plans: { next: string[] }[];
  };
  // The status does not count the covered pods, because it would have to list every pod of the cluster for this.
  expect(plans[0]?.next).toEqual(Object.keys(COVERED).slice(0, 1));

  const path = await kubeconfigFor('controller');
  await using leader = new RefitProcess('controller', '--kubeconfig', path);
  expect(await signalsOf(puppets)).toEqual(FEWEST_FIRST);
  expect((await puppets.end()).state).toBe('Completed');
  expect(await leader.stop('SIGTERM')).toBe(0);
});

test('without the field nodes start in the order of the plan', async () => {
  await using puppets = await Puppets.create(admin, ...Object.keys(COVERED));
  await createWorkload();
  await applyPolicy({});
  const path = await kubeconfigFor('controller');
  await using leader = new RefitProcess('controller', '--kubeconfig', path);
  await puppets.plan(1);
  expect(await signalsOf(puppets)).toEqual(Object.keys(COVERED));
  expect(await leader.stop('SIGTERM')).toBe(0);
});
