/** Tests how the check of operators judges the objects of each operator. */
import { expect, test } from 'vitest';
import { placedPod, readyContext, readyNode } from '../../../test/support/ready/world.ts';
import { checkDrains } from '../checks/drains.ts';
import { checkOperators } from '../checks/operators.ts';
import type { FoundBy } from '../finding.ts';

const about = (part: string): string => expect.stringContaining(part) as string;
const CNPG = 'postgresql.cnpg.io/v1';
const KUBEVIRT = 'kubevirt.io/v1';
const LONGHORN = 'longhorn.io/v1beta2';

interface Fields {
  readonly spec?: unknown;
  readonly status?: unknown;
  readonly metadata?: object;
  readonly value?: unknown;
}
const custom = (apiVersion: string, kind: string, { metadata, ...more }: Fields): object => ({
  apiVersion,
  kind,
  metadata: { name: 'main', namespace: 'app', ...metadata },
  ...more,
});
const ask = async (objects: readonly object[], forbidden: readonly string[] = []) =>
  await checkOperators(readyContext({ objects, forbidden }));
/** Returns the states and messages of the findings that are not ok. */
const problemsOf = async (
  ...asked: Parameters<typeof ask>
): Promise<Pick<FoundBy, 'state' | 'message'>[]> =>
  (await ask(...asked))
    .filter(({ state }) => state !== 'ok')
    .map(({ state, message }) => ({ state, message }));

const ALONE = custom(CNPG, 'Cluster', { spec: { instances: 1 } });
const BLOCKED = {
  state: 'blocker',
  message: about('it has one instance, and CloudNativePG keeps'),
};
const UNREADABLE = {
  metadata: { name: 'odd' },
  get spec(): unknown {
    return new Proxy({}, { get: () => JSON.parse('no') as unknown });
  },
};

test.each<[string, object, string]>([
  [
    'a Cluster whose spec is null',
    custom(CNPG, 'Cluster', { metadata: { name: 'odd' }, spec: null }),
    'its spec is no object',
  ],
  [
    'a Cluster whose status is a text',
    custom(CNPG, 'Cluster', { metadata: { name: 'odd' }, spec: {}, status: 'x' }),
    'its status is no object',
  ],
  [
    'a Cluster whose number of instances is a text',
    custom(CNPG, 'Cluster', { metadata: { name: 'odd' }, spec: { instances: '2' } }),
    'spec.instances is no number',
  ],
  [
    'a Cluster whose fields cannot be read',
    custom(CNPG, 'Cluster', UNREADABLE),
    'its fields cannot be read',
  ],
  [
    'a postgresql without a number of instances',
    custom('acid.zalan.do/v1', 'postgresql', {}),
    'spec.numberOfInstances is no number',
  ],
  [
    'a volume without a number of replicas',
    custom(LONGHORN, 'Volume', { status: { state: 'detached' } }),
    'spec.numberOfReplicas is no number',
  ],
  [
    'an attached volume without a robustness',
    custom(LONGHORN, 'Volume', { spec: { numberOfReplicas: 2 }, status: { state: 'attached' } }),
    'whether the volume is healthy',
  ],
  [
    'a virtual machine with a strange strategy',
    custom(KUBEVIRT, 'VirtualMachineInstance', { spec: { evictionStrategy: 5 } }),
    'does not know the eviction strategy 5',
  ],
  [
    'a CephCluster without a health',
    custom('ceph.rook.io/v1', 'CephCluster', { status: { ceph: [] } }),
    'whether Ceph is healthy',
  ],
])('%s is unknown, and hides no blocker of another object', async (_title, odd, message) => {
  const found = await problemsOf([odd, ALONE]);
  expect(found).toHaveLength(2);
  expect(found).toContainEqual({ state: 'unknown', message: about(message) });
  expect(found).toContainEqual(BLOCKED);
});

test.each<[unknown]>([[5], [''], ['block-sometimes']])(
  'with the value %j of node-drain-policy, only the last replica of Longhorn is unknown',
  async (value) => {
    const setting = custom(LONGHORN, 'Setting', { metadata: { name: 'node-drain-policy' }, value });
    const volume = custom(LONGHORN, 'Volume', {
      spec: { numberOfReplicas: 1 },
      status: { state: 'attached', robustness: 'healthy' },
    });
    expect(await problemsOf([setting, volume, ALONE])).toEqual([
      BLOCKED,
      { state: 'unknown', message: about(`has the value ${JSON.stringify(value)}`) },
    ]);
  },
);

test.each<[string, Fields, object[]]>([
  [
    'block-for-eviction',
    { spec: { numberOfReplicas: 2 } },
    [{ state: 'warning', message: about('has copied each replica') }],
  ],
  ['block-if-contains-last-replica', { spec: { numberOfReplicas: 2 } }, []],
  [
    'block-if-contains-last-replica',
    { spec: { numberOfReplicas: 2 }, status: { state: 'detached', robustness: 'faulted' } },
    [{ state: 'warning', message: about('the volume is faulted, so a drain') }],
  ],
])(
  'with the node-drain-policy %s, a volume of Longhorn with %j is judged',
  async (value, fields, found) => {
    const setting = custom(LONGHORN, 'Setting', { metadata: { name: 'node-drain-policy' }, value });
    expect(await problemsOf([setting, custom(LONGHORN, 'Volume', fields)])).toEqual(found);
  },
);

test('what an operator will do is told with the number of its objects in the whole cluster', async () => {
  const volume = (name: string): object =>
    custom(LONGHORN, 'Volume', { metadata: { name }, spec: { numberOfReplicas: 3 } });
  const machine = custom(KUBEVIRT, 'VirtualMachineInstance', {});
  expect(await ask([volume('a'), volume('b'), machine])).toEqual([
    { state: 'ok', message: expect.stringMatching(/^Longhorn has 2 volumes; it keeps /) as string },
    {
      state: 'ok',
      message: expect.stringMatching(/^KubeVirt has 1 virtual machine; it /) as string,
    },
  ]);
});

const hibernating = (status?: string): Fields => ({
  metadata: { annotations: { 'cnpg.io/hibernation': 'on' } },
  spec: { instances: 1 },
  status: { conditions: status === undefined ? [] : [{ type: 'cnpg.io/hibernation', status }] },
});
const windowed = (nodeMaintenanceWindow: unknown): Fields => ({
  spec: { instances: 1, nodeMaintenanceWindow },
});
const replicated = (instances: number, status: object): Fields => ({ spec: { instances }, status });

test.each<[string, Fields, string | undefined, string]>([
  ['that is hibernated', hibernating('True'), undefined, ''],
  ['that will be hibernated once it is healthy', hibernating('False'), 'blocker', 'one instance'],
  ['that is to be hibernated', hibernating(), 'unknown', 'whether it still has a pod'],
  [
    'with one instance in a window that may use the volume again',
    windowed({ inProgress: true }),
    undefined,
    '',
  ],
  [
    'with one instance in a window that must not use the volume again',
    windowed({ inProgress: true, reusePVC: false }),
    'blocker',
    'one instance',
  ],
  ['with one instance beside a window', windowed({ reusePVC: true }), 'blocker', 'one instance'],
  [
    'with one of two instances ready',
    replicated(2, { instances: 2, readyInstances: 1 }),
    'blocker',
    'only 1 of its 2 instances is ready, so CloudNativePG has no replica',
  ],
  ['with none of two instances ready', replicated(2, { instances: 2 }), 'blocker', 'only 0 of'],
  [
    'with two of three instances ready',
    replicated(3, { instances: 3, readyInstances: 2 }),
    'warning',
    'only 2 of its 3 instances are ready, so a drain may wait',
  ],
  ['with all instances ready', replicated(3, { readyInstances: 3 }), undefined, ''],
  ['without a status', replicated(3, {}), 'unknown', 'no readyInstances'],
  [
    'without budgets, and with one of two instances ready',
    { spec: { instances: 2, enablePDB: false }, status: { readyInstances: 1 } },
    undefined,
    '',
  ],
])(
  'a Cluster of CloudNativePG %s is judged by what its operator does',
  async (_title, fields, state, message) => {
    expect(await problemsOf([custom(CNPG, 'Cluster', fields)])).toEqual(
      state === undefined ? [] : [{ state, message: about(message) }],
    );
  },
);

const budget = (matchLabels: object, spec: object, metadata: object = {}): object => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: 'pg', namespace: 'app', generation: 1, ...metadata },
  spec: { ...spec, selector: { matchLabels } },
  status: {
    observedGeneration: 1,
    disruptionsAllowed: 0,
    currentHealthy: 1,
    desiredHealthy: 1,
    expectedPods: 1,
  },
});

test('a budget that CloudNativePG no longer keeps blocks the drain of its node', async () => {
  const labels = { 'cnpg.io/cluster': 'main' };
  const owner = { apiVersion: CNPG, kind: 'Cluster', name: 'main', uid: 'x', controller: true };
  const found = await checkDrains(
    readyContext({
      objects: [
        readyNode('w1'),
        placedPod('db-1', 'w1', {}, { labels }),
        budget(labels, { minAvailable: 1 }, { ownerReferences: [owner] }),
        custom(CNPG, 'Cluster', { spec: { instances: 1, enablePDB: false } }),
      ],
    }),
  );
  expect(found).toEqual([expect.objectContaining({ state: 'blocker' })]);
});

const postgresql = (numberOfInstances: number): object =>
  custom('acid.zalan.do/v1', 'postgresql', { spec: { numberOfInstances } });
const PRIMARY = { application: 'spilo', 'cluster-name': 'main', 'spilo-role': 'master' };
const REPLICA = { ...PRIMARY, 'spilo-role': 'replica' };
const NEVER_GOES = { state: 'blocker', message: about('never lets this instance go') };
const NO_REPLICA = { state: 'blocker', message: about('no replica of it is ready') };
const unready = (pod: object): object => ({
  ...pod,
  status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'False' }] },
});
const primaryPod = placedPod('main-0', 'w1', {}, { labels: PRIMARY });
const replicaPod = placedPod('main-1', 'w2', {}, { labels: REPLICA });
const othersReplica = placedPod(
  'other-1',
  'w2',
  {},
  {
    labels: { ...REPLICA, 'cluster-name': 'other' },
  },
);

test.each<[string, object[], object[]]>([
  [
    'one instance and a budget',
    [postgresql(1), budget(PRIMARY, { minAvailable: 1 })],
    [NEVER_GOES],
  ],
  [
    'one instance and a budget with another name of the label of the cluster',
    [
      postgresql(1),
      budget({ 'example.com/pg': 'main', 'spilo-role': 'master' }, { minAvailable: '50%' }),
    ],
    [NEVER_GOES],
  ],
  [
    'one instance and a budget that allows nothing',
    [postgresql(1), budget(PRIMARY, { maxUnavailable: 0 })],
    [NEVER_GOES],
  ],
  [
    'one instance and a budget without a number',
    [postgresql(1), budget(PRIMARY, {})],
    [NEVER_GOES],
  ],
  [
    'one instance and a budget that the operator has set to zero',
    [postgresql(1), budget(PRIMARY, { minAvailable: 0 })],
    [],
  ],
  ['one instance and no budget', [postgresql(1)], []],
  [
    'one instance and the budget of another cluster',
    [postgresql(1), budget({ ...PRIMARY, 'cluster-name': 'other' }, { minAvailable: 1 })],
    [],
  ],
  ['no instance', [postgresql(0), budget(PRIMARY, { minAvailable: 1 })], []],
  [
    'two instances and a ready replica',
    [postgresql(2), budget(PRIMARY, { minAvailable: 1 }), primaryPod, replicaPod],
    [],
  ],
  [
    'two instances and a replica that is not ready',
    [postgresql(2), budget(PRIMARY, { minAvailable: 1 }), primaryPod, unready(replicaPod)],
    [NO_REPLICA],
  ],
  [
    'two instances and only the replica of another cluster',
    [postgresql(2), budget(PRIMARY, { minAvailable: 1 }), primaryPod, othersReplica],
    [NO_REPLICA],
  ],
])('a postgresql of Zalando with %s is judged by its budget', async (_title, objects, found) => {
  expect(await problemsOf(objects)).toEqual(found);
});

test.each<[number, string, string]>([
  [1, 'PodDisruptionBudget', 'whether a budget lets its primary go: you may not read'],
  [2, 'Pod', 'whether a replica can become its primary: you may not read'],
])(
  'a postgresql with %i instances is unknown without the right to read a %s',
  async (count, kind, message) => {
    const objects = [postgresql(count), budget(PRIMARY, { minAvailable: 1 })];
    expect(await problemsOf(objects, [kind])).toEqual([
      { state: 'unknown', message: about(message) },
    ]);
  },
);

test('a budget for the primary of a postgresql that is gone blocks the drain of its node', async () => {
  const labels = { ...PRIMARY, 'cluster-name': 'gone' };
  const found = await checkDrains(
    readyContext({
      objects: [
        readyNode('w1'),
        placedPod('gone-0', 'w1', {}, { labels }),
        budget(labels, { minAvailable: 1 }),
        postgresql(1),
      ],
    }),
  );
  expect(found).toEqual([expect.objectContaining({ state: 'blocker' })]);
});

const kubeVirt = (evictionStrategy: unknown, name = 'kubevirt'): object =>
  custom(KUBEVIRT, 'KubeVirt', {
    metadata: { name },
    spec: { configuration: { evictionStrategy } },
  });
const machine = (evictionStrategy?: string, status: object = {}): object =>
  custom(KUBEVIRT, 'VirtualMachineInstance', { spec: { evictionStrategy }, status });
const migratable = (status: string): object => ({
  phase: 'Running',
  conditions: [{ type: 'LiveMigratable', status, message: 'a host disk' }],
});
const CANNOT = { state: 'blocker', message: about('cannot be: a host disk') };
const EXTERNAL = { state: 'warning', message: about('only after somebody else has moved or') };

test.each<[string, object[], object[]]>([
  [
    'the strategy of the cluster',
    [kubeVirt('LiveMigrate'), machine(undefined, migratable('False'))],
    [CANNOT],
  ],
  [
    'the strategy of the cluster that can be migrated',
    [kubeVirt('LiveMigrate'), machine(undefined, migratable('True'))],
    [],
  ],
  ['a strategy of its own', [kubeVirt('LiveMigrate'), machine('None', migratable('False'))], []],
  ['no strategy at all', [kubeVirt(undefined), machine(undefined, migratable('False'))], []],
  ['no strategy, beside no KubeVirt', [machine(undefined, migratable('False'))], []],
  [
    'the strategy LiveMigrateIfPossible',
    [machine('LiveMigrateIfPossible', migratable('False'))],
    [],
  ],
  ['the strategy External', [machine('External', migratable('True'))], [EXTERNAL]],
  ['the strategy External of the cluster', [kubeVirt('External'), machine()], [EXTERNAL]],
  [
    'a strategy and an end',
    [machine('LiveMigrate', { ...migratable('False'), phase: 'Succeeded' })],
    [],
  ],
  [
    'a strategy, and nothing said about its migration',
    [machine('LiveMigrate')],
    [{ state: 'unknown', message: about('whether it can be migrated') }],
  ],
  [
    'strategies of two clusters',
    [kubeVirt('LiveMigrate'), kubeVirt('None', 'second'), machine()],
    [{ state: 'unknown', message: about('have different eviction strategies') }],
  ],
  [
    'a KubeVirt whose spec is null',
    [custom(KUBEVIRT, 'KubeVirt', { spec: null }), machine()],
    [{ state: 'unknown', message: about('the configuration of KubeVirt is no object') }],
  ],
])('a virtual machine with %s is judged by that', async (_title, objects, found) => {
  expect(await problemsOf(objects)).toEqual(found);
});

test('without the right to read the KubeVirt, only a virtual machine without a strategy is unknown', async () => {
  expect(await problemsOf([kubeVirt('None'), machine()], ['KubeVirt'])).toEqual([
    { state: 'unknown', message: about('which eviction strategy it has: you may not read') },
  ]);
  expect(await problemsOf([kubeVirt('LiveMigrate'), machine('None')], ['KubeVirt'])).toEqual([]);
});
