/**
 * Proves that a Plan which returns to an earlier version upgrades each node again, even if the earlier Job still
 * exists.
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
import { type Job, jobs, type Node, nodes, pods, secrets } from '../../../kube/resources.ts';
import { cattle } from './cattle-dialect.ts';
import { DEFAULT_JOB_SETTINGS } from './config.ts';
import { jobOf } from './job.ts';
import { latestHash } from './latest.ts';
import { hashLabelOf } from './names.ts';

const config = { name: 'controller', namespace: 'system-upgrade', job: DEFAULT_JOB_SETTINGS };
const dialect = cattle(config);
const NOW = T0 + 5 * MINUTE;
const draft = buildCattlePlan('p');
const hashes = {
  'v1.2.3': latestHash(draft, 'v1.2.3', []),
  'v1.2.4': latestHash(draft, 'v1.2.4', []),
};
const node = buildNode('a', {
  labels: { 'kubernetes.io/hostname': 'a', [hashLabelOf('p')]: hashes['v1.2.4'] },
});

function endedJob(version: keyof typeof hashes, type: string, minute: number): Job {
  const made = jobOf(config, {
    plan: draft,
    node,
    version,
    hash: hashes[version],
    settings: config.job,
  });
  const metadata = {
    ...made.metadata,
    uid: `job-${version}`,
    creationTimestamp: later(minute * MINUTE),
  };
  return {
    ...made,
    metadata,
    status: { conditions: [{ type, status: 'True', lastTransitionTime: later(minute * MINUTE) }] },
  };
}

/**
 * Returns the writes for the node after the Plan has returned to v1.2.3, while `earlier` and the Job for v1.2.4 exist.
 */
function sentAfter(earlier: Job): unknown[] {
  const conditions = [
    { type: 'Complete', status: 'True', reason: 'Complete' },
    { type: 'Validated', status: 'True', reason: 'PlanIsValid' },
    { type: 'LatestResolved', status: 'True', reason: 'Version' },
  ];
  let plan: CattlePlan = {
    ...draft,
    status: { conditions, latestVersion: 'v1.2.4', latestHash: hashes['v1.2.4'] },
  };
  const all = [earlier, endedJob('v1.2.4', 'Complete', 2)];
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

test.each(['Complete', 'Failed'])(
  'its earlier Job was %s before that of the later version: it makes room',
  (type) => {
    expect(sentAfter(endedJob('v1.2.3', type, 1))).toMatchObject([
      { kind: 'delete', object: { metadata: { uid: 'job-v1.2.3' } } },
    ]);
  },
);

test('its Job is the last that ran on the node: it counts', () => {
  expect(sentAfter(endedJob('v1.2.3', 'Complete', 3))).toEqual([]);
});
