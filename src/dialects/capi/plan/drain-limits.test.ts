/** Tests how the limits of Machines for their drains decide whether a budget stops an upgrade. */
import { expect, test } from 'vitest';
import { placedPod, readyContext, readyNode } from '../../../../test/support/ready/world.ts';
import { checkDrains } from '../../../ready/checks/drains.ts';
import type { DialectReadiness } from '../../../ready/context.ts';
import { clusterApiReadiness, readinessOfCluster } from './readiness.ts';

const BUDGET = {
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: 'pg', namespace: 'app', generation: 1 },
  spec: { maxUnavailable: 0, selector: { matchLabels: { app: 'pg' } } },
};

function nodeOf(name: string, cluster = 'blue'): object {
  const node = readyNode(name) as { readonly metadata: object };
  const annotations = {
    'cluster.x-k8s.io/cluster-name': cluster,
    'cluster.x-k8s.io/cluster-namespace': 'prod',
  };
  return { ...node, metadata: { ...node.metadata, annotations } };
}

function machineOf(node: string, seconds?: number, clusterName = 'blue'): object {
  return {
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'Machine',
    metadata: { name: `machine-${node}`, namespace: 'prod' },
    spec: {
      clusterName,
      ...(seconds !== undefined && { deletion: { nodeDrainTimeoutSeconds: seconds } }),
    },
    status: { nodeRef: { name: node } },
  };
}

const PODS = [BUDGET, placedPod('pg-1', 'w1'), placedPod('pg-2', 'w2')];

async function ask(dialect: DialectReadiness, objects: object[], forbidden: string[] = []) {
  const context = readyContext({ objects: [...PODS, ...objects], forbidden, dialects: [dialect] });
  const found = await checkDrains(context);
  return found.map(({ state, message }) => `${state}: ${message}`);
}

test('a budget stops only the nodes whose Machine has no limit for its drain', async () => {
  const objects = [nodeOf('w1'), nodeOf('w2'), machineOf('w1', 600), machineOf('w2')];
  expect(await ask(clusterApiReadiness, objects)).toEqual([
    expect.stringMatching(/^blocker: .*, so the drain of w2 cannot end: it covers app\/pg-1$/),
    expect.stringMatching(
      /^warning: .*, so the drain ends only at the limit of the Machine, and then the pods stop without an eviction \(w1 after 10 min\): it covers app\/pg-1$/,
    ),
  ]);
});

test('with --cluster, the Machines of that Cluster in the management cluster have the limits', async () => {
  const objects = [machineOf('w1', 60), machineOf('w2', 60), machineOf('w1', undefined, 'green')];
  const management = readyContext({ objects });
  const dialect = readinessOfCluster(management, { cluster: 'blue', namespace: 'prod' });
  expect(await ask(dialect, [nodeOf('w1'), nodeOf('w2')])).toEqual([
    expect.stringContaining('w1 after 1 min, w2 after 1 min'),
  ]);
});

test.each([
  ['is in another cluster', [], 'it is in the management cluster, which --cluster reads'],
  ['may not be read', ['Machine'], 'you may not read machines'],
])(
  'a Machine that %s may have a limit, so the blocker says that',
  async (_what, forbidden, why) => {
    expect(await ask(clusterApiReadiness, [nodeOf('w1'), nodeOf('w2')], forbidden)).toEqual([
      expect.stringContaining(
        `so the drain of w1, w2 cannot end, unless its Machine has a limit (${why})`,
      ),
    ]);
  },
);

test('a Node that only claims another Cluster gets no limit from its Machines', async () => {
  const objects = [nodeOf('w1', 'green'), nodeOf('w2'), machineOf('other', 600, 'green')];
  const found = await ask(clusterApiReadiness, [...objects, machineOf('w2')]);
  expect(found.join('\n')).not.toContain('warning');
});

test('Nodes of another product have no limit, and no question about one', async () => {
  expect(await ask(clusterApiReadiness, [readyNode('w1'), readyNode('w2')])).toEqual([
    expect.stringMatching(/so the drain of w1, w2 cannot end: it covers/),
  ]);
});
