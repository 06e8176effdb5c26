/**
 * Tests that a Node of another cluster is not signalled if a Machine refers to it by its name. The answer contains the
 * reason.
 */
import { expect, test } from 'vitest';
import { machines, NODE_ANNOTATIONS } from '../../src/api/capi/machine.ts';
import { type Node, nodes } from '../../src/kube/resources.ts';
import { MachineScene } from '../support/capi/machine-scene.ts';

const HINT = 'check that --kubeconfig is for the cluster of this Machine';

function annotated(node: Node, annotation: string, value: string): Node {
  const annotations = { ...node.metadata.annotations, [annotation]: value };
  return { ...node, metadata: { ...node.metadata, annotations } };
}

function bare(node: Node): Node {
  return { ...node, metadata: { ...node.metadata, annotations: {} }, spec: {} };
}

const attacks: [string, (node: Node) => Node, string][] = [
  [
    'of another machine of the cloud',
    (node) => ({ ...node, spec: { providerID: 'stand-in://w1-of-staging' } }),
    'spec.providerID is stand-in://w1, spec.providerID of the Node is stand-in://w1-of-staging',
  ],
  [
    'of another Cluster',
    (node) => annotated(node, NODE_ANNOTATIONS.cluster, 'staging'),
    'spec.clusterName is stand-in, cluster.x-k8s.io/cluster-name of the Node is staging',
  ],
  [
    'of a Cluster of the same name in another namespace',
    (node) => annotated(node, NODE_ANNOTATIONS.namespace, 'staging'),
    'metadata.namespace is default, cluster.x-k8s.io/cluster-namespace of the Node is staging',
  ],
  [
    'of another Machine',
    (node) => annotated(node, NODE_ANNOTATIONS.machine, 'm-w2'),
    'metadata.name is m-w1, cluster.x-k8s.io/machine of the Node is m-w2',
  ],
  ['that belongs to no Machine at all', bare, 'spec.providerID of the Node is missing'],
];

test.each(attacks)('a Node %s', async (_name, change, disagreement) => {
  const scene = new MachineScene(['w1']);
  scene.api.change(nodes, 'w1', change);
  const before = scene.node('w1');
  const { status, message } = await scene.ask('w1');
  expect(status).toBe('Failure');
  expect(message).toContain('Machine default/m-w1 and node w1 do not belong together: ');
  expect(message).toContain(disagreement);
  expect(message).toContain(HINT);
  await scene.lead('w1');
  expect(scene.node('w1')).toEqual(before);
});

test('a Node that was made anew under the name since the Machine got its own', async () => {
  const scene = new MachineScene(['w1']);
  const nodeRef = { name: 'w1', uid: 'uid-of-the-node-before' };
  scene.api.change(machines, 'm-w1', (machine) => ({ ...machine, status: { nodeRef } }));
  const { message } = await scene.ask('w1');
  expect(message).toContain(
    'status.nodeRef.uid is uid-of-the-node-before, metadata.uid of the Node is w1-uid',
  );
});

test('a Machine that does not say which machine of the cloud it is', async () => {
  const scene = new MachineScene(['w1']);
  scene.api.change(machines, 'm-w1', (machine) => ({
    ...machine,
    spec: { version: 'v1.35.1', clusterName: 'stand-in' },
  }));
  expect((await scene.ask('w1')).message).toContain('spec.providerID is empty');
});

test('a Node that agrees in everything is updated', async () => {
  const scene = new MachineScene(['w1']);
  expect(await scene.ask('w1')).toMatchObject({
    status: 'Success',
    message: 'node w1 is about to start',
  });
});
