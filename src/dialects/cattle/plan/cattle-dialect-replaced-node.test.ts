/**
 * Proves that a Job which ended before its Node was created does not count: at that time, another machine had the name.
 */
import { expect, test } from 'vitest';
import { buildCattlePlan } from '../../../../test/support/builders/cattle-plans.ts';
import { afterRecord } from '../../../../test/support/builders/cattle-records.ts';
import { decide } from '../../../../test/support/builders/decisions.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildWorldOf } from '../../../../test/support/builders/worlds-of-kinds.ts';
import { later, MINUTE, T0 } from '../../../../test/support/clock/times.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { DEFAULT_POLICY } from '../../../engine/policy/rollout-policy.ts';
import { gather } from '../../../engine/snapshot/gather.ts';
import {
  annotated,
  type Job,
  jobs,
  type Node,
  nodes,
  pods,
  secrets,
} from '../../../kube/resources.ts';
import { cattle } from './cattle-dialect.ts';
import { DEFAULT_JOB_SETTINGS } from './config.ts';
import { jobOf } from './job.ts';
import { latestHash } from './latest.ts';

const config = { name: 'controller', namespace: 'system-upgrade', job: DEFAULT_JOB_SETTINGS };
const dialect = cattle(config);
/** By this time Kubernetes has deleted the Job, because it deletes a Job 15 minutes after its end. */
const NOW = T0 + 30 * MINUTE;
const hash = latestHash(buildCattlePlan('p'), 'v1.2.3', []);
const made = buildNode('a', { labels: { 'kubernetes.io/hostname': 'a' } });

const FAILED = {
  type: 'RefitFailedNodes',
  status: 'True',
  message: `a at ${later(MINUTE)}; generation 0`,
};
const DELETE = { kind: 'delete', object: { metadata: { uid: 'j' } } };
const CREATE = {
  kind: 'create',
  object: { metadata: { labels: { 'upgrade.cattle.io/node': 'a' } } },
};

/** Returns the writes for the Node once its target is recorded as intended. */
function sentFor(type: string, node: typeof made, isDeleted = false, annotations = {}): unknown[] {
  const conditions = [
    { type: 'Complete', status: type === 'Complete' ? 'True' : 'False', reason: type },
    { type: 'Validated', status: 'True', reason: 'PlanIsValid' },
    { type: 'LatestResolved', status: 'True', reason: 'Version' },
    ...(type === 'Failed' ? [FAILED] : []),
  ];
  const applying = type === 'Failed' ? { applying: ['a'] } : {};
  let plan: CattlePlan = {
    ...buildCattlePlan('p'),
    status: { conditions, latestVersion: 'v1.2.3', latestHash: hash, ...applying },
  };
  const rendered = jobOf(config, { plan, node, version: 'v1.2.3', hash, settings: config.job });
  const job: Job = {
    ...rendered,
    metadata: {
      ...annotated(rendered, annotations).metadata,
      uid: 'j',
      creationTimestamp: later(0),
    },
    status: { conditions: [{ type, status: 'True', lastTransitionTime: later(MINUTE) }] },
  };
  const all = isDeleted ? [] : [job];
  const worldOf = (present: readonly Node[]) =>
    buildWorldOf([nodes, present], [jobs, all], [pods, []], [secrets, []]);
  const world = worldOf([node]);
  const { record } = decide(gather(dialect, plan, world, NOW), DEFAULT_POLICY, NOW);
  const written = afterRecord(dialect, world, record, plan, [node]);
  if (record) plan = dialect.project(record, plan, NOW);
  const snapshot = gather(dialect, plan, worldOf(written), NOW);
  const { signals } = decide(snapshot, DEFAULT_POLICY, NOW);
  return signals.map((signalling) =>
    dialect.signal.send(world, snapshot.rollout, signalling, plan),
  );
}

/** Returns a Node that was created at `time` and whose kubelet last reported after 20 minutes. */
function createdAt(time: number): typeof made {
  const ready = { type: 'Ready', status: 'True', lastHeartbeatTime: later(20 * MINUTE) } as const;
  return {
    ...made,
    metadata: { ...made.metadata, creationTimestamp: later(time) },
    status: { conditions: [ready] },
  };
}

test.each(['Complete', 'Failed'])(
  'its Job was %s: it is replaced, and the new Node upgraded',
  (type) => {
    expect(sentFor(type, createdAt(5 * MINUTE))).toMatchObject([DELETE]);
  },
);

test('its failure stands in the Plan, and Kubernetes has deleted the Job: the new Node is upgraded', () => {
  expect(sentFor('Failed', createdAt(5 * MINUTE), true)).toMatchObject([CREATE]);
});

test.each([
  ['counts: the same machine was started', 'a/b', []],
  ['says nothing: another machine has the name', 'a/c', [DELETE]],
])('a Job that was done before its Node was made anew %s', (_what, machine, expected) => {
  const [machineID = '', systemUUID = ''] = machine.split('/');
  const node = createdAt(5 * MINUTE);
  const anew = { ...node, status: { ...node.status, nodeInfo: { machineID, systemUUID } } };
  expect(
    sentFor('Complete', anew, false, { 'refit.upgrade.cattle.io/machine': 'a/b' }),
  ).toMatchObject(expected);
});

test('a Job says for which machine it is made', () => {
  const { status, ...node } = createdAt(5 * MINUTE);
  const known = { ...node, status: { ...status, nodeInfo: { machineID: 'a', systemUUID: 'b' } } };
  const annotations = { 'refit.upgrade.cattle.io/machine': 'a/b' };
  expect(sentFor('Failed', known, true)).toMatchObject([
    { kind: 'create', object: { metadata: { annotations } } },
  ]);
});

test.each(['Complete', 'Failed'])('a Job that was %s on the Node itself counts', (type) => {
  expect(sentFor(type, createdAt(-MINUTE))).toEqual([]);
});

test.each(['Complete', 'Failed'])(
  'so does one that was %s on a Node that was made in the future',
  (type) => {
    // The creation time comes from a wrong clock. If it counted, every later Job would seem to end before it.
    expect(sentFor(type, createdAt(24 * 60 * MINUTE))).toEqual([]);
  },
);

test('two machines that do not say which they are count as different', () => {
  const unknown = { 'refit.upgrade.cattle.io/machine': '' };
  expect(sentFor('Complete', createdAt(5 * MINUTE), false, unknown)).toMatchObject([DELETE]);
});
