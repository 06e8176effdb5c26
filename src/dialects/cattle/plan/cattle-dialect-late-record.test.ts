/**
 * Proves that a failure which is recorded late, for example after a restart of the controller, still counts when
 * Kubernetes deletes the Job.
 */
import { expect, test } from 'vitest';
import { buildCattlePlan } from '../../../../test/support/builders/cattle-plans.ts';
import { decide } from '../../../../test/support/builders/decisions.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildWorldOf } from '../../../../test/support/builders/worlds-of-kinds.ts';
import { later, MINUTE, T0 } from '../../../../test/support/clock/times.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { assess, phaseOf } from '../../../engine/assess/assess.ts';
import { withStages } from '../../../engine/model/rollout.ts';
import { DEFAULT_POLICY } from '../../../engine/policy/rollout-policy.ts';
import { gather } from '../../../engine/snapshot/gather.ts';
import { type Job, jobs, nodes, pods, secrets } from '../../../kube/resources.ts';
import { cattle } from './cattle-dialect.ts';
import { DEFAULT_JOB_SETTINGS } from './config.ts';
import { jobOf } from './job.ts';
import { latestHash } from './latest.ts';

const config = { name: 'controller', namespace: 'system-upgrade', job: DEFAULT_JOB_SETTINGS };
const node = buildNode('a', { labels: { 'kubernetes.io/hostname': 'a' } });
const bare = buildCattlePlan('p');
const version = 'v1.2.3';
const hash = latestHash(bare, version, []);
const rendered = jobOf(config, { plan: bare, node, version, hash, settings: config.job });
const failed: Job = {
  ...rendered,
  metadata: { ...rendered.metadata, uid: 'j', creationTimestamp: later(0) },
  status: {
    conditions: [
      { type: 'Failed', status: 'True', reason: 'Why', lastTransitionTime: later(MINUTE) },
    ],
  },
};
const running: NonNullable<CattlePlan['status']> = {
  conditions: [
    { type: 'Complete', status: 'False', reason: 'SyncJob' },
    { type: 'Validated', status: 'True', reason: 'PlanIsValid' },
    { type: 'LatestResolved', status: 'True', reason: 'Version' },
  ],
  latestVersion: version,
  latestHash: hash,
  applying: ['a'],
};

/**
 * The Job fails after a minute, and Kubernetes deletes it 15 minutes later. Returns the states of its node before and
 * after the deletion.
 */
function statesWhenRecordedAfter(minutes: number): unknown[] {
  const dialect = cattle(config);
  let plan: CattlePlan = { ...bare, status: running };
  const at = (time: number, made: readonly Job[]): unknown => {
    const world = buildWorldOf([nodes, [node]], [jobs, made], [pods, []], [secrets, []]);
    const { record } = decide(gather(dialect, plan, world, time), DEFAULT_POLICY, time);
    if (record) plan = dialect.project(record, plan, time);
    const after = assess(gather(dialect, plan, world, time), DEFAULT_POLICY, time);
    return withStages(after.snapshot.rollout).map(({ stage, target }) =>
      phaseOf(after, stage, target),
    );
  };
  return [at(T0 + minutes * MINUTE, [failed]), at(T0 + 17 * MINUTE, [])];
}

test.each([1, 10])('recorded after %i minutes', (minutes) => {
  expect(statesWhenRecordedAfter(minutes)).toEqual([['failed'], ['failed']]);
});
