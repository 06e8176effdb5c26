/** Shows which lifecycle conditions of a Node Refit recognizes as its own, and with which patch it sets and clears them. */
import { expect, test } from 'vitest';
import type { Node, NodeCondition } from '../kube/resources.ts';
import {
  isChange,
  LIFECYCLE_REASON,
  type LifecycleState,
  lifecycleChange,
  lifecycleOn,
  lifecyclePatch,
} from './lifecycle-conditions.ts';

const OWNER = 'plan-uid/1/Plan';
const OURS: NodeCondition = {
  type: 'DrainInProgress',
  status: 'True',
  reason: 'RefitUpgrade',
  message: `set by Refit for ${OWNER}`,
};
const nodeWith = (...conditions: readonly NodeCondition[]): Node => ({
  metadata: { name: 'n1', resourceVersion: '7' },
  status: { conditions: [...conditions] },
});

test.each<[string, Node, readonly LifecycleState[]]>([
  [
    'A condition of Refit has its owner',
    nodeWith(OURS),
    [{ type: 'DrainInProgress', owner: OWNER }],
  ],
  [
    'A condition with the reason of somebody else has no owner of Refit',
    nodeWith({ ...OURS, reason: 'Other' }),
    [{ type: 'DrainInProgress', owner: undefined }],
  ],
  [
    'A condition with the reason of Refit but with another message has no owner of Refit',
    nodeWith({ ...OURS, message: `it is not set by Refit for ` }),
    [{ type: 'DrainInProgress', owner: undefined }],
  ],
  [
    'A condition without a message has no owner of Refit',
    nodeWith({ type: 'Drained', status: 'True', reason: LIFECYCLE_REASON }),
    [{ type: 'Drained', owner: undefined }],
  ],
  ['A condition that is False is not listed', nodeWith({ ...OURS, status: 'False' }), []],
  [
    'A condition that is Unknown is not listed, and a condition of the kubelet is not listed',
    nodeWith({ ...OURS, status: 'Unknown' }, { type: 'Ready', status: 'True' }),
    [],
  ],
  [
    'Several conditions are listed in the order of an upgrade, among the conditions of the kubelet',
    nodeWith(
      { type: 'Drained', status: 'True' },
      { type: 'Ready', status: 'True' },
      { ...OURS, type: 'MaintenanceInProgress' },
      { ...OURS, type: 'MaintenancePlanned' },
    ),
    [
      { type: 'MaintenancePlanned', owner: OWNER },
      { type: 'MaintenanceInProgress', owner: OWNER },
      { type: 'Drained', owner: undefined },
    ],
  ],
  ['A Node without conditions has none', { metadata: { name: 'n1' }, status: {} }, []],
  ['A Node without a status has none', { metadata: { name: 'n1' } }, []],
])('%s', (_title, node, expected) => {
  expect(lifecycleOn(node)).toEqual(expected);
});

test('a missing condition is set, and a condition of Refit that is no longer wanted is cleared', () => {
  const shown: LifecycleState[] = [{ type: 'DrainInProgress', owner: OWNER }];
  const change = lifecycleChange(shown, OWNER, ['MaintenanceInProgress', 'Drained']);
  expect(change).toEqual({
    set: ['MaintenanceInProgress', 'Drained'],
    clear: ['DrainInProgress'],
  });
});

test('a condition that Refit or somebody else has set already is not set again', () => {
  const shown: LifecycleState[] = [
    { type: 'MaintenanceInProgress', owner: OWNER },
    { type: 'DrainInProgress', owner: undefined },
  ];
  const change = lifecycleChange(shown, OWNER, ['MaintenanceInProgress', 'DrainInProgress']);
  expect(change).toEqual({ set: [], clear: [] });
});

test.each([undefined, 'another-plan/1/Plan'])(
  'a condition of another owner (%s) is not cleared, although it is not wanted',
  (owner) => {
    const shown: LifecycleState[] = [{ type: 'Drained', owner }];
    expect(lifecycleChange(shown, OWNER, [])).toEqual({ set: [], clear: [] });
  },
);

test('a change is one that sets or clears at least one condition', () => {
  expect(isChange({ set: [], clear: [] })).toBe(false);
  expect(isChange({ set: ['Drained'], clear: [] })).toBe(true);
  expect(isChange({ set: [], clear: ['Drained'] })).toBe(true);
  expect(isChange({ set: ['Drained'], clear: ['DrainInProgress'] })).toBe(true);
});

test('the patch contains only the conditions of Refit, and applies only to the version that was read', () => {
  const now = Date.UTC(2026, 0, 1, 12, 0, 5);
  const change = { set: ['Drained'], clear: ['DrainInProgress'] } as const;
  const times = {
    lastHeartbeatTime: '2026-01-01T12:00:05Z',
    lastTransitionTime: '2026-01-01T12:00:05Z',
  };
  expect(lifecyclePatch(nodeWith(OURS), OWNER, change, now)).toEqual({
    metadata: { resourceVersion: '7' },
    status: {
      conditions: [
        {
          type: 'Drained',
          status: 'True',
          reason: 'RefitUpgrade',
          message: `set by Refit for ${OWNER}`,
          ...times,
        },
        {
          type: 'DrainInProgress',
          status: 'False',
          reason: 'RefitUpgrade',
          message: `cleared by Refit for ${OWNER}`,
          ...times,
        },
      ],
    },
  });
});

test('Refit finds its own condition again in what its patch has written', () => {
  const { status } = lifecyclePatch(nodeWith(), OWNER, { set: ['Drained'], clear: [] }, 0);
  expect(lifecycleOn(nodeWith(...status.conditions))).toEqual([{ type: 'Drained', owner: OWNER }]);
});
