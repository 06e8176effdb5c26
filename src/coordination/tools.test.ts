/** Tests which work of other tools is recognized on Nodes. */
import { expect, test } from 'vitest';
import { buildNode } from '../../test/support/builders/nodes.ts';
import type { Node } from '../kube/resources.ts';
import { otherWorkOn } from './tools.ts';

function tainted(key: string, effect = 'NoSchedule'): Node {
  const node = buildNode('w1');
  return { ...node, spec: { ...node.spec, taints: [{ key, effect }] } };
}

function labelled(labels: Record<string, string>): Node {
  return buildNode('w1', { labels });
}

const STATE = 'nvidia.com/gpu-driver-upgrade-state';
const SKIP = 'nvidia.com/gpu-driver-upgrade.skip';
const upgrading = (state: string): string =>
  `GPUOperator: the GPU Operator is upgrading the driver of the node (label ${STATE}: ${state})`;

test.each<[string, Node, string[]]>([
  ['a Node at rest', buildNode('w1'), []],
  [
    'a Node that the cluster autoscaler deletes',
    tainted('ToBeDeletedByClusterAutoscaler'),
    [
      'ClusterAutoscaler: the cluster autoscaler is deleting the node (taint ToBeDeletedByClusterAutoscaler)',
    ],
  ],
  [
    'a Node that the cluster autoscaler may delete later',
    tainted('DeletionCandidateOfClusterAutoscaler', 'PreferNoSchedule'),
    [],
  ],
  [
    'a Node that Karpenter removes',
    tainted('karpenter.sh/disrupted'),
    ['Karpenter: Karpenter is removing the node (taint karpenter.sh/disrupted)'],
  ],
  [
    'a Node that Karpenter before 1.0 removes',
    tainted('karpenter.sh/disruption'),
    ['Karpenter: Karpenter is removing the node (taint karpenter.sh/disruption)'],
  ],
  [
    'a Node that Kured reboots',
    buildNode('w1', { annotations: { 'weave.works/kured-reboot-in-progress': 'x' } }),
    ['Kured: Kured is rebooting the node (annotation weave.works/kured-reboot-in-progress)'],
  ],
  ['a driver that is up to date', labelled({ [STATE]: 'upgrade-done' }), []],
  ['a driver that was never upgraded', labelled({ [STATE]: '' }), []],
  [
    'a driver that waits for its turn',
    labelled({ [STATE]: 'upgrade-required' }),
    [upgrading('upgrade-required')],
  ],
  ['a driver that nobody upgrades', labelled({ [STATE]: 'upgrade-required', [SKIP]: 'true' }), []],
  [
    'a drain for a driver that is not skipped any more',
    labelled({ [STATE]: 'drain-required', [SKIP]: 'true' }),
    [upgrading('drain-required')],
  ],
  [
    'a driver that could not be upgraded',
    labelled({ [STATE]: 'upgrade-failed' }),
    [
      `GPUOperator: the GPU Operator failed to upgrade the driver of the node (label ${STATE}: upgrade-failed)`,
    ],
  ],
])('%s', (_title, node, expected) => {
  expect(otherWorkOn(node).map(({ tool, message }) => `${tool}: ${message}`)).toEqual(expected);
});
