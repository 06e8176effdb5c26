/** Proves which taints and cordons are recognized as left over from replaced requests. */

import { expect, test } from 'vitest';
import { decide } from '../../../../test/support/builders/decisions.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildWorld } from '../../../../test/support/builders/worlds.ts';
import { PENDING_TAINT, withCordon, writeOwner } from '../../../drain/cordon-marks.ts';
import { DEFAULT_POLICY } from '../../../engine/policy/rollout-policy.ts';
import { gatherOrphaned } from '../../../engine/snapshot/gather.ts';
import type { ConfigMap } from '../../../kube/resources.ts';
import { kubeadmDialect } from './kubeadm-dialect.ts';
import { type Report, reportPatch } from './kubeadm-signal.ts';
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

const REPORT = {
  rollout: 'gone',
  target: 'workers/w1',
  attempt: '2026-11-20T08:00:00Z',
  state: 'failed',
  step: 'Stage',
  since: '2026-11-20T08:00:00Z',
  spent: {},
} as const satisfies Report;
const UNTOUCHED = ['clean-up w1'];

test.each<[string, string, Report | undefined, string[]]>([
  ['on a host that failed before a change', 'gone', REPORT, UNTOUCHED],
  [
    'whose host failed in a later run, before a change',
    'gone',
    { ...REPORT, rollout: 'run-uid' },
    UNTOUCHED,
  ],
  ['of the run that is there', 'run-uid', REPORT, []],
  ['on a host that failed after a change', 'gone', { ...REPORT, touched: true }, []],
  ['on a host that an earlier run has changed', 'gone', { ...REPORT, touchedBefore: true }, []],
  ['on a host that is at work', 'gone', { ...REPORT, state: 'working' }, []],
  ['on a host that has reported nothing', 'gone', undefined, []],
])('a cordon %s', (_name, plan, report, wanted) => {
  const owner = writeOwner({ plan, attempt: '2026-11-20T08:00:00Z', kind: 'ConfigMap' });
  const annotations = report ? annotationsOf(report) : {};
  const node = withCordon(buildNode('w1', { annotations }), owner);
  const dialect = kubeadmDialect(undefined);
  const world = buildWorld([], [node]);
  const plans = [{ metadata: { ...PLACE, uid: 'plan-uid' }, data: { uid: 'run-uid' } }];
  const nodeActions = (dialect.orphanedWork?.plans(world, plans) ?? []).flatMap((left) => {
    const snapshot = gatherOrphaned({ dialect, ...left, world, known: {} }, 0);
    return decide(snapshot, DEFAULT_POLICY, 0).nodeActions;
  });
  expect(nodeActions.map(({ kind, node: name }) => `${kind} ${name}`)).toEqual(wanted);
});

function annotationsOf(report: Report): Record<string, string> {
  const { metadata } = reportPatch(report) as { metadata: { annotations: Record<string, string> } };
  return metadata.annotations;
}
