/** Tests what `refit ready` says about operators of databases, volumes and machines, before upgrades that broke for others. */
import { expect, test } from 'vitest';
import { placedPod, readyContext, readyNode } from '../../test/support/ready/world.ts';
import { checkDrains } from './checks/drains.ts';
import { checkOperators } from './checks/operators.ts';

const about = (part: string): string => expect.stringContaining(part) as string;
const drains = async (...objects: object[]) =>
  await checkDrains(readyContext({ objects: [readyNode('w1'), readyNode('w2'), ...objects] }));

/** Returns a budget with the status that the disruption controller writes while its only pod is healthy. */
const budgetOfOne = (name: string, matchLabels: object, metadata: object = {}): object => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name, namespace: 'app', generation: 1, ...metadata },
  spec: { minAvailable: 1, selector: { matchLabels } },
  status: {
    observedGeneration: 1,
    disruptionsAllowed: 0,
    currentHealthy: 1,
    desiredHealthy: 1,
    expectedPods: 1,
  },
});

test('a budget for the only pod of a database names the node whose drain never ends', async () => {
  const labels = { app: 'pg', role: 'primary' };
  expect(await drains(placedPod('pg-1', 'w1', {}, { labels }), budgetOfOne('pg', labels))).toEqual([
    {
      state: 'blocker',
      object: 'PodDisruptionBudget app/pg',
      message: about('so the drain of w1 cannot end: it covers app/pg-1'),
      cure: 'change the budget, or run more replicas',
    },
  ]);
});

const custom = (apiVersion: string, kind: string, more: object): object => ({
  apiVersion,
  kind,
  metadata: { name: 'main', namespace: 'app' },
  ...more,
});
const ownedBy = (apiVersion: string, kind: string): object => ({
  ownerReferences: [{ apiVersion, kind, name: 'main', uid: 'x', controller: true }],
});
const CNPG = 'postgresql.cnpg.io/v1';
const KUBEVIRT = 'kubevirt.io/v1';
const IMAGE_LABELS = { 'longhorn.io/component': 'instance-manager', 'longhorn.io/node': 'w1' };
const VOLUME = custom('longhorn.io/v1beta2', 'Volume', {
  spec: { numberOfReplicas: 3 },
  status: { state: 'attached', robustness: 'healthy' },
});

test.each<[string, Record<string, string>, object, object]>([
  [
    'Zalando',
    { application: 'spilo', 'cluster-name': 'main', 'spilo-role': 'master' },
    {},
    custom('acid.zalan.do/v1', 'postgresql', { spec: { numberOfInstances: 3 } }),
  ],
  [
    'CloudNativePG',
    { 'cnpg.io/cluster': 'main', 'cnpg.io/instanceRole': 'primary' },
    ownedBy(CNPG, 'Cluster'),
    custom(CNPG, 'Cluster', { spec: { instances: 3 } }),
  ],
  ['Longhorn', IMAGE_LABELS, {}, VOLUME],
  [
    'KubeVirt',
    { 'kubevirt.io/created-by': 'x' },
    ownedBy(KUBEVIRT, 'VirtualMachineInstance'),
    custom(KUBEVIRT, 'VirtualMachineInstance', { spec: { evictionStrategy: 'LiveMigrate' } }),
  ],
])(
  'a budget of %s that opens after the cordon is no blocker, unless the operator is gone or another budget covers the pod',
  async (_title, labels, metadata, object) => {
    const pod = placedPod('db-1', 'w1', {}, { labels });
    const budget = budgetOfOne('db', labels, metadata);
    const ok = [{ state: 'ok', message: 'no budget blocks the drain of a node' }];
    expect(await drains(pod, budget, object)).toEqual(ok);
    const blocked = expect.objectContaining({ state: 'blocker' }) as object;
    expect(await drains(pod, budget)).toEqual([blocked]);
    expect(await drains(pod, budget, object, budgetOfOne('mine', labels))).toEqual([blocked]);
  },
);

test.each<[string | undefined, string, string | undefined, string]>([
  [
    undefined,
    'attached',
    'blocker',
    'block-if-contains-last-replica the drain of its node does not end',
  ],
  [undefined, 'detached', 'warning', 'does not end if the volume has ever been used'],
  ['block-if-contains-last-replica', 'attached', 'blocker', 'the drain of its node does not end'],
  [
    'block-for-eviction',
    'attached',
    'warning',
    'waits until Longhorn has copied it to another node',
  ],
  ['block-for-eviction-if-contains-last-replica', 'detached', 'warning', 'waits until Longhorn'],
  ['allow-if-replica-is-stopped', 'attached', undefined, ''],
  ['always-allow', 'attached', 'warning', 'may restart while the replica is in use'],
  ['always-allow', 'detached', undefined, ''],
])(
  'with the node-drain-policy %s of Longhorn, the last replica of a volume that is %s is a %s',
  async (value, state, found, message) => {
    const volume = custom('longhorn.io/v1beta2', 'Volume', {
      spec: { numberOfReplicas: 1 },
      status: { state, robustness: state === 'attached' ? 'healthy' : 'unknown' },
    });
    const setting = custom('longhorn.io/v1beta2', 'Setting', {
      metadata: { name: 'node-drain-policy', namespace: 'app' },
      value,
    });
    const objects = [volume, ...(value === undefined ? [] : [setting])];
    const problem = {
      state: found,
      object: 'Volume app/main',
      message: about(message),
      cure: expect.any(String) as string,
    };
    expect(await checkOperators(readyContext({ objects }))).toEqual([
      ...(found === undefined ? [] : [problem]),
      expect.objectContaining({ state: 'ok' }),
    ]);
  },
);

test('whether the only replica of a volume holds a drain is unknown without the right to read the setting', async () => {
  const volume = custom('longhorn.io/v1beta2', 'Volume', {
    spec: { numberOfReplicas: 1 },
    status: { state: 'attached', robustness: 'healthy' },
  });
  const context = readyContext({ objects: [volume], forbidden: ['Setting'] });
  expect(await checkOperators(context)).toEqual([
    {
      state: 'unknown',
      object: 'Volume app/main',
      message: about('the node with its only replica ends: you may not read'),
    },
    expect.objectContaining({ state: 'ok' }),
  ]);
});

test('a warning of Ceph tells its reasons, and is no blocker', async () => {
  const details = {
    MON_DISK_LOW: { severity: 'HEALTH_WARN', message: 'mon a is low on available space' },
  };
  const status = { ceph: { health: 'HEALTH_WARN', details } };
  const objects = [custom('ceph.rook.io/v1', 'CephCluster', { status })];
  expect(await checkOperators(readyContext({ objects }))).toEqual([
    expect.objectContaining({
      state: 'warning',
      object: 'CephCluster app/main',
      message: about('HEALTH_WARN (MON_DISK_LOW: mon a is low on available space)'),
    }),
    expect.objectContaining({ state: 'ok' }),
  ]);
});
