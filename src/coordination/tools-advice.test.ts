/** Tests that the work of each tool on a Node comes with the event that ends the work. */
import { expect, test } from 'vitest';
import { buildNode } from '../../test/support/builders/nodes.ts';
import type { Node } from '../kube/resources.ts';
import { otherWorkOn } from './tools.ts';

function tainted(key: string): Node {
  return { ...buildNode('w1'), spec: { taints: [{ key, effect: 'NoSchedule' }] } };
}

function upgrading(state: string): Node {
  return buildNode('w1', { labels: { 'nvidia.com/gpu-driver-upgrade-state': state } });
}

test.each<[string, Node, string]>([
  [
    'the cluster autoscaler',
    tainted('ToBeDeletedByClusterAutoscaler'),
    'the node is gone, or the cluster autoscaler removes the taint ToBeDeletedByClusterAutoscaler',
  ],
  [
    'Karpenter',
    tainted('karpenter.sh/disrupted'),
    'the node is gone, or Karpenter removes the taint karpenter.sh/disrupted',
  ],
  [
    'Kured',
    buildNode('w1', { annotations: { 'weave.works/kured-reboot-in-progress': 'x' } }),
    'Kured has rebooted the node and removes the annotation weave.works/kured-reboot-in-progress',
  ],
  [
    'the GPU Operator',
    upgrading('drain-required'),
    'the label nvidia.com/gpu-driver-upgrade-state becomes upgrade-done',
  ],
  [
    'the GPU Operator, after a failure',
    upgrading('upgrade-failed'),
    'somebody repairs the driver and the label becomes upgrade-done',
  ],
])('the work of %s comes with the event that ends it', (_title, node, ends) => {
  expect(otherWorkOn(node).map((work) => work.ends)).toEqual([ends]);
});

test('a Node whose spec has no taints shows no work of another tool', () => {
  expect(otherWorkOn({ ...buildNode('w1'), spec: {} })).toEqual([]);
});
