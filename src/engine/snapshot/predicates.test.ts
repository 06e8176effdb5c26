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
  ['nothing', structuredClone(node), false],
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
  ['what it is made of', status({ nodeInfo: { operatingSystem: 'linux' } }), false],
  ['its version', status({ nodeInfo: { kubeletVersion: 'v1.36.3' } }), true],
  ['it was cordoned', { ...node, spec: { unschedulable: true } }, true],
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
  ['it became not Ready', status({}, [{ type: 'Ready', status: 'Unknown' }]), true],
  ['it lost its conditions', status({}, []), true],
  ['an annotation', { ...node, metadata: { ...node.metadata, annotations: { a: '2' } } }, true],
  [
    'that its agent lives',
    {
      ...node,
      metadata: { ...node.metadata, annotations: { a: '1', [HEARTBEAT_ANNOTATION]: '{}' } },
    },
    false,
  ],
  ['an annotation less', { ...node, metadata: { ...node.metadata, annotations: {} } }, true],
  ['a label', { ...node, metadata: { ...node.metadata, labels: { pool: 'blue' } } }, true],
  ['an address', status({ addresses: [{ type: 'InternalIP', address: '10.0.0.9' }] }), true],
  [
    'another object under the same name',
    { ...node, metadata: { ...node.metadata, uid: 'other' } },
    true,
  ],
])('%s changed', (_name, after, wanted) => {
  expect(isRelevant(node, after)).toBe(wanted);
});
