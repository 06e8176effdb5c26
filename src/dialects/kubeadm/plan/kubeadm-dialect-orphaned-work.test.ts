/** Proves which taints are recognized as left over from replaced requests. */

import { expect, test } from 'vitest';
import { decide } from '../../../../test/support/builders/decisions.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildWorld } from '../../../../test/support/builders/worlds.ts';
import { PENDING_TAINT } from '../../../drain/cordon-marks.ts';
import { DEFAULT_POLICY } from '../../../engine/policy/rollout-policy.ts';
import { gatherOrphaned } from '../../../engine/snapshot/gather.ts';
import type { ConfigMap } from '../../../kube/resources.ts';
import { kubeadmDialect } from './kubeadm-dialect.ts';
import { PLACE } from './plan-object.ts';

const plan: ConfigMap = { metadata: { ...PLACE, uid: 'plan-uid' } };

test.each<[string, string, readonly ConfigMap[], string[]]>([
  ['of a request that another one replaced', 'ConfigMap.gone', [plan], ['clean-up w1']],
  ['of one that was deleted', 'ConfigMap.gone', [], ['clean-up w1']],
  ['of the one that is there', 'ConfigMap.plan-uid', [plan], []],
  ['of the run that is there', 'ConfigMap.run-uid', [{ ...plan, data: { uid: 'run-uid' } }], []],
  [
    'of the run before',
    'ConfigMap.plan-uid',
    [{ ...plan, data: { uid: 'run-uid' } }],
    ['clean-up w1'],
  ],
  ['of a Plan of another dialect', 'Plan.gone', [], []],
  ['of an earlier version, which names nobody', '', [], ['clean-up w1']],
  [
    'of an earlier version, beside a request that does not list the host',
    '',
    [plan],
    ['clean-up w1'],
  ],
])('a taint %s', (_name, value, plans, wanted) => {
  const node = { ...buildNode('w1'), spec: { taints: [{ ...PENDING_TAINT, value }] } };
  const dialect = kubeadmDialect(undefined);
  const world = buildWorld([], [node]);
  const nodeActions = (dialect.orphanedWork?.plans(world, plans) ?? []).flatMap((left) => {
    const snapshot = gatherOrphaned({ dialect, ...left, world, known: {} }, 0);
    return decide(snapshot, DEFAULT_POLICY, 0).nodeActions;
  });
  expect(nodeActions.map((nodeAction) => `${nodeAction.kind} ${nodeAction.node}`)).toEqual(wanted);
});
