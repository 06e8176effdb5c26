/** Tests the checks of drains and of operators that act on them. */
import { expect, test } from 'vitest';
import { placedPod, readyContext, readyNode } from '../../../test/support/ready/world.ts';
import { checkDrains } from './drains.ts';
import { checkOperators } from './operators.ts';

const budget = (spec: object, status?: object): object => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: 'web', namespace: 'app', generation: 1 },
  spec: { selector: { matchLabels: { app: 'web' } }, ...spec },
  ...(status && { status: { observedGeneration: 1, expectedPods: 3, ...status } }),
});
const askDrains = async (...objects: object[]) =>
  await checkDrains(readyContext({ objects: [readyNode('w1'), readyNode('w2'), ...objects] }));

test('a budget that never allows an eviction is a blocker with its nodes and pods', async () => {
  const found = await askDrains(
    placedPod('web-1', 'w1'),
    placedPod('web-2', 'w2'),
    budget({ maxUnavailable: 0 }),
  );
  expect(found).toEqual([
    {
      state: 'blocker',
      object: 'PodDisruptionBudget app/web',
      message: expect.stringMatching(
        /, so the drain of w1, w2 cannot end: it covers app\/web-1$/,
      ) as string,
      cure: 'change the budget, or run more replicas',
    },
  ]);
});

test('a budget that allows an eviction when all pods are healthy is ok', async () => {
  const status = { disruptionsAllowed: 1, currentHealthy: 3, desiredHealthy: 2 };
  expect(await askDrains(placedPod('web-1', 'w1'), budget({ maxUnavailable: 1 }, status))).toEqual([
    { state: 'ok', message: 'no budget blocks the drain of a node' },
  ]);
});

test('a budget that allows no eviction now, because a pod is not healthy, is a warning', async () => {
  const status = { disruptionsAllowed: 0, currentHealthy: 2, desiredHealthy: 2 };
  expect(await askDrains(placedPod('web-1', 'w1'), budget({ maxUnavailable: 1 }, status))).toEqual([
    {
      state: 'warning',
      object: 'PodDisruptionBudget app/web',
      message:
        'it allows no eviction now (it needs 2 healthy pods and has 2 currently), so the drain of w1 waits: it covers app/web-1',
      cure: 'make all pods that it covers Ready first',
    },
  ]);
});

test('two budgets for one pod are a blocker, and more replicas are not its cure', async () => {
  const status = { disruptionsAllowed: 1, currentHealthy: 3, desiredHealthy: 2 };
  const first = budget({ maxUnavailable: 1 }, status) as { metadata: object };
  const second = { ...first, metadata: { ...first.metadata, name: 'web2' } };
  expect(await askDrains(placedPod('web-1', 'w1'), first, second)).toEqual([
    expect.objectContaining({ state: 'blocker', cure: 'let only one budget cover each pod' }),
  ]);
});

test('without the right to read DaemonSets, it is unknown whether their pods come back', async () => {
  const objects = [readyNode('w1'), readyNode('w2')];
  expect(await checkDrains(readyContext({ objects, forbidden: ['DaemonSet'] }))).toEqual([
    {
      state: 'unknown',
      message: 'whether the DaemonSets of all pods exist: you may not read daemonsets',
    },
  ]);
});

test('a pod that nothing creates again is a warning', async () => {
  const bare = placedPod('alone', 'w1', {}, { ownerReferences: [] });
  expect(await askDrains(bare)).toEqual([
    expect.objectContaining({ state: 'warning', object: 'Pod app/alone' }),
  ]);
});

test('data in an emptyDir volume is told, and blocks nothing', async () => {
  const pod = placedPod('web-1', 'w1', { volumes: [{ name: 'x', emptyDir: {} }] });
  expect(await askDrains(pod)).toEqual([
    {
      state: 'ok',
      message:
        'no budget blocks the drain of a node; 1 pod would lose the data in an emptyDir volume, as with every restart of a pod',
    },
  ]);
});

test.each(['Node', 'Pod', 'PodDisruptionBudget'])(
  'the drains are unknown if the user may not read %s',
  async (kind) => {
    expect(await checkDrains(readyContext({ forbidden: [kind] }))).toEqual([
      expect.objectContaining({ state: 'unknown' }),
    ]);
  },
);

const custom = (apiVersion: string, kind: string, spec: object, status: object = {}): object => ({
  apiVersion,
  kind,
  metadata: { name: 'main', namespace: 'db' },
  spec,
  status,
});
const CNPG = 'postgresql.cnpg.io/v1';
const cannotMigrate = {
  conditions: [{ type: 'LiveMigratable', status: 'False', message: 'a host disk' }],
};

test.each<[string, object, string, string]>([
  [
    'CloudNativePG with one instance',
    custom(CNPG, 'Cluster', { instances: 1 }),
    'blocker',
    'Cluster db/main',
  ],
  [
    'a faulted volume of Longhorn',
    custom('longhorn.io/v1beta2', 'Volume', {}, { state: 'attached', robustness: 'faulted' }),
    'blocker',
    'Volume db/main',
  ],
  [
    'a degraded volume of Longhorn',
    custom('longhorn.io/v1beta2', 'Volume', {}, { state: 'attached', robustness: 'degraded' }),
    'warning',
    'Volume db/main',
  ],
  [
    'a volume of Longhorn with one replica',
    custom(
      'longhorn.io/v1beta2',
      'Volume',
      { numberOfReplicas: 1 },
      { state: 'attached', robustness: 'healthy' },
    ),
    'blocker',
    'Volume db/main',
  ],
  [
    'a virtual machine that cannot be migrated',
    custom(
      'kubevirt.io/v1',
      'VirtualMachineInstance',
      { evictionStrategy: 'LiveMigrate' },
      cannotMigrate,
    ),
    'blocker',
    'VirtualMachineInstance db/main',
  ],
  [
    'Ceph with an error',
    custom('ceph.rook.io/v1', 'CephCluster', {}, { ceph: { health: 'HEALTH_ERR' } }),
    'blocker',
    'CephCluster db/main',
  ],
  [
    'Ceph with a warning',
    custom('ceph.rook.io/v1', 'CephCluster', {}, { ceph: { health: 'HEALTH_WARN' } }),
    'warning',
    'CephCluster db/main',
  ],
])('%s is found, and what the operator does is told', async (_title, object, state, name) => {
  expect(await checkOperators(readyContext({ objects: [object] }))).toEqual([
    expect.objectContaining({ state, object: name }),
    expect.objectContaining({ state: 'ok' }),
  ]);
});

test.each<[string, object]>([
  [
    'CloudNativePG with three instances',
    custom(CNPG, 'Cluster', { instances: 3 }, { readyInstances: 3 }),
  ],
  [
    'CloudNativePG in a maintenance window',
    custom(CNPG, 'Cluster', { instances: 1, nodeMaintenanceWindow: { inProgress: true } }),
  ],
  ['CloudNativePG without a budget', custom(CNPG, 'Cluster', { instances: 1, enablePDB: false })],
  [
    'a detached volume of Longhorn with replicas on several nodes',
    custom('longhorn.io/v1beta2', 'Volume', { numberOfReplicas: 2 }, { state: 'detached' }),
  ],
  [
    'a virtual machine that is not migrated',
    custom('kubevirt.io/v1', 'VirtualMachineInstance', {}, cannotMigrate),
  ],
  [
    'a healthy Ceph',
    custom('ceph.rook.io/v1', 'CephCluster', {}, { ceph: { health: 'HEALTH_OK' } }),
  ],
])('%s only tells what to expect', async (_title, object) => {
  expect(await checkOperators(readyContext({ objects: [object] }))).toEqual([
    expect.objectContaining({ state: 'ok' }),
  ]);
});
