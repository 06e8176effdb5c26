/** Proves how a node ends if its Plan excludes it, or if its Plan becomes invalid, while the node is in progress. */
import { expect, test } from 'vitest';
import { buildCattlePlan } from '../../../../test/support/builders/cattle-plans.ts';
import { decide } from '../../../../test/support/builders/decisions.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildWorldOf } from '../../../../test/support/builders/worlds-of-kinds.ts';
import { later, MINUTE, T0 } from '../../../../test/support/clock/times.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { stateChanges } from '../../../engine/model/rollout.ts';
import { DEFAULT_POLICY } from '../../../engine/policy/rollout-policy.ts';
import { gather } from '../../../engine/snapshot/gather.ts';
import { type Job, jobs, type Node, nodes, pods, secrets } from '../../../kube/resources.ts';
import { cattle } from './cattle-dialect.ts';
import { DEFAULT_JOB_SETTINGS } from './config.ts';
import { jobOf } from './job.ts';
import { latestHash } from './latest.ts';

const config = { name: 'controller', namespace: 'system-upgrade', job: DEFAULT_JOB_SETTINGS };
const dialect = cattle(config);
const valid = buildCattlePlan('p', { drain: {} });
const HASH = latestHash(valid, 'v1.2.3', []);
const complete = { type: 'Complete', status: 'True', lastTransitionTime: later(MINUTE) } as const;

class Rig {
  node: Node = {
    ...buildNode('a', { labels: { 'kubernetes.io/hostname': 'a' } }, 'False'),
    spec: { unschedulable: true },
  };
  plan: CattlePlan = {
    ...valid,
    status: {
      conditions: [
        { type: 'Complete', status: 'False', reason: 'SyncJob' },
        { type: 'Validated', status: 'True', reason: 'PlanIsValid' },
        { type: 'LatestResolved', status: 'True', reason: 'Version' },
      ],
      latestVersion: 'v1.2.3',
      latestHash: HASH,
      applying: ['a'],
    },
  };
  made: Job[] = [];
  now = T0 + 10 * MINUTE;

  done(version = 'v1.2.3'): void {
    const hash = latestHash(this.plan, version, []);
    const job = jobOf(config, {
      plan: this.plan,
      node: this.node,
      version,
      hash,
      settings: config.job,
    });
    this.made = [
      {
        ...job,
        metadata: { ...job.metadata, uid: 'j', creationTimestamp: later(0) },
        status: { conditions: [complete] },
      },
    ];
  }

  lead(): void {
    for (let round = 0; round < 6; round++) {
      const { plan } = this;
      const world = buildWorldOf(
        [nodes, [this.node]],
        [jobs, this.made],
        [pods, []],
        [secrets, []],
      );
      const policy = dialect.planRules?.apply(plan, DEFAULT_POLICY) ?? DEFAULT_POLICY;
      const snapshot = gather(dialect, plan, world, this.now);
      const { record, signals } = decide(snapshot, policy, this.now);
      if (record) {
        for (const { stage, target } of stateChanges(snapshot.rollout, record)) {
          const told =
            target.state === 'done'
              ? dialect.signal.finish?.(world, record, stage, target, plan)
              : dialect.signal.remember?.(world, record, stage, target, plan);
          if (told?.kind === 'replace') this.node = told.object;
        }
        this.plan = dialect.project(record, plan, this.now);
      } else if (signals.length > 0) this.done();
      this.now += 1000;
    }
  }
}

test.each([0, 20])(
  'the Plan is invalid for %i minutes, from when the node restarts after its Job',
  (minutes) => {
    const rig = new Rig();
    rig.done();
    // Somebody edits the Plan after the Job has drained and upgraded the node, and before the node is Ready.
    rig.lead();
    expect(rig.plan.status?.applying).toEqual(['a']);
    rig.plan = { ...rig.plan, spec: { ...rig.plan.spec, postCompleteDelay: 'soon' } } as CattlePlan;
    rig.lead();
    rig.node = {
      ...buildNode(
        'a',
        {
          labels: rig.node.metadata.labels ?? {},
          annotations: rig.node.metadata.annotations ?? {},
        },
        'True',
      ),
      spec: rig.node.spec ?? {},
    };
    // The node becomes Ready within the 15 minutes.
    rig.lead();
    rig.now += minutes * MINUTE;
    // Kubernetes deletes the Job after 15 minutes.
    if (minutes > 15) rig.made = [];
    rig.lead();
    rig.plan = { ...rig.plan, spec: valid.spec } as CattlePlan;
    rig.lead();
    expect(rig.plan.status?.conditions?.find(({ type }) => type === 'Complete')?.status).toBe(
      'True',
    );
    expect(rig.node.spec?.unschedulable).not.toBe(true);
  },
);

/** Removes the label that the selector of the Plan requires from the node. */
function deselected(version: string, isCordoned: boolean): Rig {
  const rig = new Rig();
  const { spec, status } = rig.plan;
  const plan = {
    ...rig.plan,
    spec: { ...spec, nodeSelector: { matchLabels: { upgrade: 'yes' } } },
  } as CattlePlan;
  rig.plan = {
    ...plan,
    status: { ...status, latestVersion: version, latestHash: latestHash(plan, version, []) },
  };
  rig.node = {
    ...buildNode('a', { labels: { 'kubernetes.io/hostname': 'a' } }),
    spec: { unschedulable: isCordoned },
  };
  return rig;
}

test.each(['v1.2.3', 'v1.2.2'])(
  'a node that the selector excludes gets no Job (recorded: %s)',
  (version) => {
    const rig = deselected(version, false);
    rig.lead();
    expect([rig.made, rig.plan.status?.applying ?? []]).toEqual([[], []]);
  },
);

test.each(['v1.2.3', 'v1.2.2'])(
  'its cordon does not stay either, once Kubernetes has deleted its Job (recorded: %s)',
  (version) => {
    const rig = deselected(version, true);
    rig.lead();
    expect(rig.made).toEqual([]);
    expect(rig.plan.status?.applying ?? []).toEqual([]);
    expect(rig.node.spec?.unschedulable).not.toBe(true);
  },
);

test('that of a Job that failed stays, as without a new version', () => {
  const rig = deselected('v1.2.2', true);
  rig.done('v1.2.2');
  rig.made = rig.made.map((job) => ({
    ...job,
    status: { conditions: [{ ...complete, type: 'Failed' }] },
  }));
  rig.lead();
  expect(rig.plan.status?.applying ?? []).toEqual([]);
  expect(rig.node.spec?.unschedulable).toBe(true);
});

test('a cordon by a Job of an earlier version does not stay, and the node that is left out since gets no other Job', () => {
  const rig = deselected('v1.2.2', true);
  rig.done('v1.2.2');
  const before = rig.made;
  rig.lead();
  expect(rig.made).toBe(before);
  expect(rig.plan.status?.applying ?? []).toEqual([]);
  expect(rig.node.spec?.unschedulable).not.toBe(true);
  expect(rig.node.metadata.labels).not.toHaveProperty(['plan.upgrade.cattle.io/p']);
});
