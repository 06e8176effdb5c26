/**
 * Proves that the engine resumes reading a node at rest as soon as the node has a Job, a cordon or a taint. In most
 * turns, the engine does not read nodes at rest.
 */
import { expect, test } from 'vitest';
import { buildCattlePlan } from '../../../../test/support/builders/cattle-plans.ts';
import type { Decision } from '../../../../test/support/builders/decisions.ts';
import { decide } from '../../../../test/support/builders/decisions.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildWorldOf } from '../../../../test/support/builders/worlds-of-kinds.ts';
import { later, MINUTE, T0 } from '../../../../test/support/clock/times.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { PENDING_TAINT } from '../../../drain/cordon-marks.ts';
import { ABORT_ANNOTATION } from '../../../engine/model/controls.ts';
import { DEFAULT_POLICY } from '../../../engine/policy/rollout-policy.ts';
import { gather } from '../../../engine/snapshot/gather.ts';
import { type Job, jobs, type Node, nodes, pods, secrets } from '../../../kube/resources.ts';
import { cattle } from './cattle-dialect.ts';
import { DEFAULT_JOB_SETTINGS } from './config.ts';
import { jobOf } from './job.ts';
import { latestHash } from './latest.ts';
import { hashLabelOf } from './names.ts';
import { ABORTED_TYPE } from './write-status.ts';

const NOW = T0 + 10 * MINUTE;
const config = { name: 'controller', namespace: 'system-upgrade', job: DEFAULT_JOB_SETTINGS };
const dialect = cattle(config);
const draft = buildCattlePlan('p', { cordon: true, postCompleteDelay: '30m' });
const hash = latestHash(draft, 'v1.2.3', []);

type Conditions = NonNullable<NonNullable<CattlePlan['status']>['conditions']>;

function planWith(...more: Conditions): CattlePlan {
  const conditions: Conditions = [
    { type: 'Complete', status: 'False', reason: 'SyncJob', lastUpdateTime: later(0) },
    { type: 'Validated', status: 'True', reason: 'PlanIsValid' },
    { type: 'LatestResolved', status: 'True', reason: 'Version', lastUpdateTime: later(-MINUTE) },
    ...more,
  ];
  return { ...draft, status: { conditions, latestVersion: 'v1.2.3', latestHash: hash } };
}

const running = planWith();
const over = planWith({
  type: ABORTED_TYPE,
  status: 'True',
  reason: 'Aborted',
  message: 'the plan was aborted',
});
const aborted: CattlePlan = {
  ...over,
  metadata: { ...over.metadata, annotations: { [ABORT_ANNOTATION]: 'why' } },
};

function nodeWith(labels: Record<string, string>, spec: Node['spec'] = {}): Node {
  return {
    ...buildNode('a', { labels: { 'kubernetes.io/hostname': 'a', ...labels } }, 'True'),
    spec,
  };
}
const done = { [hashLabelOf('p')]: hash };
const tainted = { taints: [{ ...PENDING_TAINT, value: '' }] };

function completeJob(): Job {
  const job = jobOf(config, {
    plan: draft,
    node: nodeWith({}),
    version: 'v1.2.3',
    hash,
    settings: config.job,
  });
  const condition = {
    type: 'Complete',
    status: 'True',
    lastTransitionTime: later(MINUTE),
  } as const;
  const metadata = { ...job.metadata, uid: 'j', creationTimestamp: later(0) };
  return { ...job, metadata, status: { startTime: later(0), conditions: [condition] } };
}

const worldOf = (node: Node, ...made: readonly Job[]) =>
  buildWorldOf([nodes, [node]], [jobs, made], [pods, []], [secrets, []]);

function decided(plan: CattlePlan, node: Node, ...made: readonly Job[]): Decision {
  return decide(gather(dialect, plan, worldOf(node, ...made), NOW), DEFAULT_POLICY, NOW);
}

const statesIn = ({ record }: Decision) =>
  record?.stages.flatMap(({ targets }) => targets.map(({ state }) => state));
const actionsIn = ({ nodeActions }: Decision) => nodeActions.map(({ kind }) => kind);

test('a pending node whose Job ended without a record is done', () => {
  const { spec } = buildCattlePlan('p', { cordon: true });
  // The policy is paused, so nothing may start.
  const paused = { ...DEFAULT_POLICY, paused: true };
  const plan: CattlePlan = { ...running, ...(spec && { spec }) };
  const snapshot = gather(dialect, plan, worldOf(nodeWith({}), completeJob()), NOW);
  expect(statesIn(decide(snapshot, paused, NOW))).toEqual(['done']);
});

test('a taint of Refit on a node that is done is removed', () => {
  expect(actionsIn(decided(aborted, nodeWith(done, tainted)))).toEqual(['clean-up']);
});

test('a taint of Refit on a pending node is removed once the plan is over', () => {
  expect(actionsIn(decided(aborted, nodeWith({}, tainted)))).toEqual(['clean-up']);
});

test('a pending node whose Job is complete is uncordoned, also after an abort', () => {
  const cordoned = nodeWith({}, { unschedulable: true });
  expect(actionsIn(decided(aborted, cordoned, completeJob()))).toEqual(['acknowledge']);
});

test('a node that is done counts from when its version began, if its Job is deleted', () => {
  const [stage] = dialect.resolve(running, worldOf(nodeWith(done)), NOW).stages;
  expect(stage?.targets.map(({ since }) => since)).toEqual([later(0)]);
});
