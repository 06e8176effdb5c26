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
  touchedBefore: false,
} as const satisfies Report;
const { touchedBefore: _, ...OF_EARLIER_RELEASE } = REPORT;

function nodeActionsFor(plan: string, report: Report | undefined): string[] {
  const owner = writeOwner({ plan, attempt: '2026-11-20T08:00:00Z', kind: 'ConfigMap' });
  const annotations = report ? annotationsOf(report) : {};
  const node = withCordon(buildNode('w1', { annotations }), owner);
  const dialect = kubeadmDialect(undefined);
  const world = buildWorld([], [node]);
  const plans = [{ metadata: { ...PLACE, uid: 'plan-uid' }, data: { uid: 'run-uid' } }];
  return (dialect.orphanedWork?.plans(world, plans) ?? []).flatMap((left) => {
    const snapshot = gatherOrphaned({ dialect, ...left, world, known: {} }, 0);
    return decide(snapshot, DEFAULT_POLICY, 0).nodeActions.map(
      ({ kind, node: name }) => `${kind} ${name}`,
    );
  });
}

test.each<[string, Report]>([
  ['its host failed before a change', REPORT],
  ['its host failed in a later run, before a change', { ...REPORT, rollout: 'run-uid' }],
])('the cordon of an earlier run is removed if %s', (_when, report) => {
  expect(nodeActionsFor('gone', report)).toEqual(['clean-up w1']);
});

test.each<[string, string, Report | undefined]>([
  ['it is of the run that is there', 'run-uid', REPORT],
  ['its host failed after a change', 'gone', { ...REPORT, touched: true }],
  ['an earlier run has changed its host', 'gone', { ...REPORT, touchedBefore: true }],
  ['its host is at work', 'gone', { ...REPORT, state: 'working' }],
  ['its host has reported nothing', 'gone', undefined],
  ['an earlier release wrote the report', 'gone', OF_EARLIER_RELEASE],
])('a cordon stays if %s', (_when, plan, report) => {
  expect(nodeActionsFor(plan, report)).toEqual([]);
});

function annotationsOf(report: Report): Record<string, string> {
  const { metadata } = reportPatch(report) as { metadata: { annotations: Record<string, string> } };
  return metadata.annotations;
}
