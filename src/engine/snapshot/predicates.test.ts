/** Tests which changes start a turn of the engine. Heartbeats must not start a turn. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { later } from '../../../test/support/clock/times.ts';
import type { Node } from '../../kube/resources.ts';
import { HEARTBEAT_ANNOTATION } from '../../signal/names.ts';
import { isRelevant } from './predicates.ts';

const node = buildNode('w1', { annotations: { a: '1' } });
const status = (more: Node['status'], conditions = node.status?.conditions): Node => ({
  ...node,
  status: { ...(conditions ? { conditions } : {}), ...more },
});

test.each<[string, Node, boolean]>([
  ['no field', structuredClone(node), false],
  [
    'only the resourceVersion',
    { ...node, metadata: { ...node.metadata, resourceVersion: '2' } },
    false,
  ],
  [
    'a heartbeat',
    status({}, [
      { type: 'Ready', status: 'True', lastTransitionTime: later(9) },
      { type: 'DiskPressure', status: 'False' },
    ]),
    false,
  ],
  ['its platform', status({ nodeInfo: { operatingSystem: 'linux' } }), false],
  ['its version', status({ nodeInfo: { kubeletVersion: 'v1.36.3' } }), true],
  ['its cordon', { ...node, spec: { unschedulable: true } }, true],
  ['a taint', { ...node, spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] } }, true],
  [
    'the order of its labels',
    {
      ...node,
      metadata: {
        ...node.metadata,
        labels: Object.fromEntries(Object.entries(node.metadata.labels ?? {}).toReversed()),
      },
    },
    false,
  ],
  ['its Ready condition', status({}, [{ type: 'Ready', status: 'Unknown' }]), true],
  ['its list of conditions', status({}, []), true],
  ['an annotation', { ...node, metadata: { ...node.metadata, annotations: { a: '2' } } }, true],
  [
    'the heartbeat of its agent',
    {
      ...node,
      metadata: { ...node.metadata, annotations: { a: '1', [HEARTBEAT_ANNOTATION]: '{}' } },
    },
    false,
  ],
  [
    'an annotation that was removed',
    { ...node, metadata: { ...node.metadata, annotations: {} } },
    true,
  ],
  ['a label', { ...node, metadata: { ...node.metadata, labels: { pool: 'blue' } } }, true],
  ['an address', status({ addresses: [{ type: 'InternalIP', address: '10.0.0.9' }] }), true],
  ['its uid', { ...node, metadata: { ...node.metadata, uid: 'other' } }, true],
])('whether a Node is looked at again after a change of %s', (_name, after, wanted) => {
  expect(isRelevant(node, after)).toBe(wanted);
});
