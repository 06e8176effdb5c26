/** Tests which objects of Cluster API are judged before an upgrade of a cluster. */
import { expect, test } from 'vitest';
import { readyContext, readyNode } from '../../../../test/support/ready/world.ts';
import type { DialectReadiness } from '../../../ready/context.ts';
import { clusterApiReadiness, readinessOfCluster } from './readiness.ts';

const FLAG = [{ name: 'containerd', value: 'x' }];
const WITH_FLAG = { joinConfiguration: { nodeRegistration: { kubeletExtraArgs: FLAG } } };
const BOOTSTRAP = 'bootstrap.cluster.x-k8s.io/v1beta2';

const template = (name: string, namespace = 'prod'): object => ({
  apiVersion: BOOTSTRAP,
  kind: 'KubeadmConfigTemplate',
  metadata: { name, namespace },
  spec: { template: { spec: WITH_FLAG } },
});
const config = (name: string): object => ({
  apiVersion: BOOTSTRAP,
  kind: 'KubeadmConfig',
  metadata: { name, namespace: 'prod' },
  spec: WITH_FLAG,
});
const controlPlane = (cluster: string, metadata: object): object => ({
  apiVersion: 'controlplane.cluster.x-k8s.io/v1beta2',
  kind: 'KubeadmControlPlane',
  metadata: { name: cluster, namespace: 'prod', ...metadata },
  spec: { kubeadmConfigSpec: WITH_FLAG },
});

interface Workers {
  readonly kind?: string;
  readonly cluster?: string;
  readonly namespace?: string;
  readonly configKind?: string;
  readonly metadata?: object;
}

/** Returns an object that makes Machines with this configuration. */
const workers = (name: string, more: Workers = {}): object => {
  const { kind = 'MachineDeployment', cluster = 'blue', namespace = 'prod' } = more;
  const configRef = {
    apiGroup: 'bootstrap.cluster.x-k8s.io',
    kind: more.configKind ?? 'KubeadmConfigTemplate',
    name,
  };
  return {
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind,
    metadata: { name: `${kind}-${name}`, namespace, ...more.metadata },
    spec: { clusterName: cluster, template: { spec: { bootstrap: { configRef } } } },
  };
};

const nodeOf = (cluster: string, namespace = 'prod'): object => {
  const node = readyNode(`${cluster}-1`) as { metadata: object };
  const annotations = {
    'cluster.x-k8s.io/cluster-name': cluster,
    'cluster.x-k8s.io/cluster-namespace': namespace,
  };
  return { ...node, metadata: { ...node.metadata, annotations } };
};

/** Resolves with the objects that have settings, and with the findings about those that could not be read. */
async function readBy(dialect: DialectReadiness, objects: object[], forbidden: string[] = []) {
  const { settings, places, unread } = await dialect.settings(readyContext({ objects, forbidden }));
  expect(new Set(settings.map(({ object }) => object))).toEqual(new Set(places));
  return { places, unread };
}

/** Resolves with what is read for the Cluster prod/blue from a management cluster with these objects. */
async function readOfBlue(...objects: object[]) {
  const wanted = { cluster: 'blue', namespace: 'prod' };
  return await readBy(readinessOfCluster(readyContext({ objects }), wanted), []);
}

test('only templates that something names are judged, so not those that a rotation left', async () => {
  expect(await readOfBlue(workers('new'), template('new'), template('old'))).toEqual({
    places: ['KubeadmConfigTemplate prod/new'],
    unread: [],
  });
});

test('a template that several objects name is read once', async () => {
  const objects = [workers('new'), workers('new', { kind: 'MachinePool' }), template('new')];
  expect((await readOfBlue(...objects)).places).toEqual(['KubeadmConfigTemplate prod/new']);
});

test('a MachineSet counts only if no MachineDeployment owns it', async () => {
  const metadata = { ownerReferences: [{ kind: 'MachineDeployment', name: 'md' }] };
  const objects = [
    workers('old', { kind: 'MachineSet', metadata }),
    workers('own', { kind: 'MachineSet' }),
    template('old'),
    template('own'),
  ];
  expect((await readOfBlue(...objects)).places).toEqual(['KubeadmConfigTemplate prod/own']);
});

test('the KubeadmConfig of a MachinePool is read', async () => {
  const pool = workers('pool', { kind: 'MachinePool', configKind: 'KubeadmConfig' });
  // Each Machine has a KubeadmConfig, too, which is not used again.
  expect(await readOfBlue(pool, config('pool'), config('machine-1'))).toEqual({
    places: ['KubeadmConfig prod/pool'],
    unread: [],
  });
});

test('a configuration that is named and does not exist is unknown', async () => {
  const { places, unread } = await readOfBlue(workers('gone'));
  expect(places).toEqual([]);
  expect(unread).toEqual([
    {
      state: 'unknown',
      object: 'KubeadmConfigTemplate prod/gone',
      message:
        'its flags and feature gates: MachineDeployment prod/MachineDeployment-gone names it, and it does not exist',
    },
  ]);
});

test('configurations of other providers are not read', async () => {
  const other = workers('x', { configKind: 'RKE2ConfigTemplate' });
  expect(await readOfBlue(other)).toEqual({ places: [], unread: [] });
});

test('objects of other Clusters, and of other namespaces, are not those of a Cluster', async () => {
  const labels = (cluster: string): object => ({
    labels: { 'cluster.x-k8s.io/cluster-name': cluster },
  });
  const found = await readOfBlue(
    controlPlane('cp-blue', labels('blue')),
    controlPlane('cp-owned', { ownerReferences: [{ kind: 'Cluster', name: 'blue' }] }),
    controlPlane('cp-green', labels('green')),
    workers('green', { cluster: 'green' }),
    template('green'),
    workers('far', { namespace: 'far' }),
    template('far', 'far'),
  );
  expect(found.places).toEqual([
    'KubeadmControlPlane prod/cp-blue',
    'KubeadmControlPlane prod/cp-owned',
  ]);
});

const TWO_CLUSTERS = [
  workers('blue'),
  template('blue'),
  workers('green', { cluster: 'green' }),
  template('green'),
];

test('in a management cluster, only the Cluster to which its own Nodes belong is judged', async () => {
  const found = await readBy(clusterApiReadiness, [nodeOf('blue'), ...TWO_CLUSTERS]);
  expect(found).toEqual({ places: ['KubeadmConfigTemplate prod/blue'], unread: [] });
});

test('a management cluster whose Nodes are of no Cluster has no such settings of its own', async () => {
  for (const node of [readyNode('w1'), nodeOf('blue', 'elsewhere')])
    expect(await readBy(clusterApiReadiness, [node, ...TWO_CLUSTERS])).toEqual({
      places: [],
      unread: [],
    });
});

test('without Nodes, nobody knows which Cluster a management cluster is', async () => {
  const { places, unread } = await readBy(clusterApiReadiness, TWO_CLUSTERS, ['Node']);
  expect(places).toEqual([]);
  expect(unread).toEqual([
    {
      state: 'unknown',
      object: 'the objects of Cluster API',
      message: 'its flags and feature gates: which Cluster this is: you may not read nodes',
    },
  ]);
  // A cluster without objects of Cluster API has no such question.
  expect((await readBy(clusterApiReadiness, [], ['Node'])).unread).toEqual([]);
});

test.each([
  ['MachineDeployment', 'objects of the kind MachineDeployment'],
  ['MachinePool', 'objects of the kind MachinePool'],
  ['KubeadmConfigTemplate', 'KubeadmConfigTemplate prod/blue'],
])('a %s that cannot be read is unknown', async (kind, object) => {
  const objects = [nodeOf('blue'), ...TWO_CLUSTERS];
  const { unread } = await readBy(clusterApiReadiness, objects, [kind]);
  expect(unread).toEqual([expect.objectContaining({ state: 'unknown', object })]);
});
