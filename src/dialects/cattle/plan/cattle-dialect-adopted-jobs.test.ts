/** Proves that a Job which the status of its Plan does not list is recorded at once, before it ends. */
import { expect, test } from 'vitest';
import { buildCattlePlan } from '../../../../test/support/builders/cattle-plans.ts';
import { afterRecord } from '../../../../test/support/builders/cattle-records.ts';
import { decide } from '../../../../test/support/builders/decisions.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildWorldOf } from '../../../../test/support/builders/worlds-of-kinds.ts';
import { later, T0 } from '../../../../test/support/clock/times.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { DEFAULT_POLICY } from '../../../engine/policy/rollout-policy.ts';
import { gather } from '../../../engine/snapshot/gather.ts';
import { jobs, nodes, pods, secrets } from '../../../kube/resources.ts';
import { cattle } from './cattle-dialect.ts';
import { DEFAULT_JOB_SETTINGS } from './config.ts';
import { jobOf } from './job.ts';
import { latestHash } from './latest.ts';

const config = { name: 'controller', namespace: 'system-upgrade', job: DEFAULT_JOB_SETTINGS };
const dialect = cattle(config);
const hash = latestHash(buildCattlePlan('p'), 'v1.2.3', []);
const node = buildNode('a', { labels: { 'kubernetes.io/hostname': 'host-a' } });

test.each(['True', 'False'])(
  'Refit records the node of a running Job in applying, also if the Plan reports Complete %s',
  (complete) => {
    const conditions = [
      { type: 'Complete', status: complete, reason: 'Complete' },
      { type: 'Validated', status: 'True', reason: 'PlanIsValid' },
      { type: 'LatestResolved', status: 'True', reason: 'Version' },
    ];
    const status = { conditions, latestVersion: 'v1.2.3', latestHash: hash };
    const plan: CattlePlan = { ...buildCattlePlan('p'), status };
    const made = jobOf(config, { plan, node, version: 'v1.2.3', hash, settings: config.job });
    const job = {
      ...made,
      metadata: { ...made.metadata, creationTimestamp: later(0) },
      status: { active: 1 },
    };
    const world = buildWorldOf([nodes, [node]], [jobs, [job]], [pods, []], [secrets, []]);
    const first = decide(gather(dialect, plan, world, T0), DEFAULT_POLICY, T0);
    const recorded = first.record ? dialect.project(first.record, plan, T0) : plan;
    expect(recorded.status?.applying).toEqual(['host-a']);
    expect(recorded.status?.conditions?.[0]).toMatchObject({
      type: 'Complete',
      status: 'False',
      reason: 'SyncJob',
    });
    const written = afterRecord(dialect, world, first.record, plan, [node]);
    const next = buildWorldOf([nodes, written], [jobs, [job]], [pods, []], [secrets, []]);
    const again = decide(gather(dialect, recorded, next, T0), DEFAULT_POLICY, T0);
    expect([again.record, again.signals]).toEqual([undefined, []]);
  },
);
