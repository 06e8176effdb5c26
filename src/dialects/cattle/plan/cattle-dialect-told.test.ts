/**
 * Proves the conditions of a Plan after a failed node is retried, after an abort, and after a node is excluded while
 * its Job runs.
 */
import { expect, test } from 'vitest';
import {
  buildCattlePlan,
  type CattleSpec,
} from '../../../../test/support/builders/cattle-plans.ts';
import { decide } from '../../../../test/support/builders/decisions.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildWorldOf } from '../../../../test/support/builders/worlds-of-kinds.ts';
import { later, MINUTE, T0 } from '../../../../test/support/clock/times.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { ABORT_ANNOTATION } from '../../../engine/model/controls.ts';
import { withStages } from '../../../engine/model/rollout.ts';
import { DEFAULT_POLICY } from '../../../engine/policy/rollout-policy.ts';
import { gather } from '../../../engine/snapshot/gather.ts';
import {
  type Condition,
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
const hash = latestHash(buildCattlePlan('p'), 'v1.2.3', []);
const LABEL = 'plan.upgrade.cattle.io/p';
const NOW = T0 + MINUTE;
const HOST = { 'kubernetes.io/hostname': 'a' };
const open = buildNode('a', { labels: HOST }, 'True');
const FAILED = {
  type: 'RefitFailedNodes',
  status: 'True',
  message: `a at ${later(0)}; generation 0`,
};

const failedPlan = (spec: Partial<CattleSpec> = {}, more: object[] = []): CattlePlan => ({
  ...buildCattlePlan('p', spec),
  status: {
    conditions: [
      { type: 'Complete', status: 'False', reason: 'JobFailed', message: 'Job x failed' },
      { type: 'Validated', status: 'True', reason: 'PlanIsValid' },
      { type: 'LatestResolved', status: 'True', reason: 'Version' },
      ...(more as { type: string; status: string }[]),
    ],
    latestVersion: 'v1.2.3',
    latestHash: hash,
    applying: ['a'],
  },
});

function jobFor(plan: CattlePlan, conditions: Condition[] = []): Job {
  const job = jobOf(config, { plan, node: open, version: 'v1.2.3', hash, settings: config.job });
  return {
    ...job,
    metadata: { ...job.metadata, uid: 'j', creationTimestamp: later(0) },
    status: { conditions },
  };
}

const worldOf = (node: Node, made: readonly Job[]) =>
  buildWorldOf([nodes, [node]], [jobs, made], [pods, []], [secrets, []]);

/** Returns the record of one turn, and the plan with that record. */
function recorded(plan: CattlePlan, made: readonly Job[] = [], node = open) {
  const { record } = decide(gather(dialect, plan, worldOf(node, made), NOW), DEFAULT_POLICY, NOW);
  return { record, plan: record ? dialect.project(record, plan, NOW) : plan };
}

const told = ({ status }: CattlePlan, type: string): string | undefined =>
  status?.conditions
    ?.filter((condition) => condition.type === type)
    .map(({ reason, message }) => `${reason} ${message ?? ''}`.trim())[0];

test('while a failed node is tried again, nothing says that a Job failed', () => {
  const plan = failedPlan();
  const rollout = dialect.resolve(plan, worldOf(open, [jobFor(plan)]), NOW);
  expect(told(dialect.project(rollout, plan, NOW), 'Complete')).toBe('Resolved');
});

test('an abort leaves what is said of the failure, and ends with its annotation', () => {
  const before = failedPlan({}, [FAILED]);
  const aborting = {
    ...before,
    metadata: { ...before.metadata, annotations: { [ABORT_ANNOTATION]: 'wrong image' } },
  };
  const made = [jobFor(before, [{ type: 'Failed', status: 'True' }])];
  const { plan: stopped } = recorded(aborting, made);
  expect(told(stopped, 'RefitAborted')).toBe('Aborted the plan was aborted: wrong image');
  expect(told(stopped, 'Complete')).toBe('JobFailed Job x failed');
  const { plan: resumed } = recorded({ ...stopped, metadata: before.metadata }, made);
  expect(told(resumed, 'RefitAborted')).toBeUndefined();
  expect(told(resumed, 'Complete')).toBe('JobFailed Job x failed');
});

test('a node that is left out while its Job works gets its cordon back, and stays left out', () => {
  const plan = failedPlan({ cordon: true });
  const labels = { ...HOST, [LABEL]: 'disabled' };
  const node = { ...open, metadata: { ...open.metadata, labels }, spec: { unschedulable: true } };
  const made = [jobFor(plan, [{ type: 'Complete', status: 'True' }])];
  const { record } = recorded(plan, made, node);
  const [done] = record ? withStages(record).filter(({ target }) => target.state === 'done') : [];
  const finish =
    record &&
    done &&
    dialect.signal.finish?.(worldOf(node, made), record, done.stage, done.target, plan);
  expect(finish).toMatchObject({ object: { metadata: { labels }, spec: {} } });
  expect(finish).not.toMatchObject({ object: { spec: { unschedulable: true } } });
});

test('the node that was told is tried again: the Plan tells another one that failed, and each failure has an Event', () => {
  const failures = (names: string) => ({ ...FAILED, message: `${names}; generation 0` });
  const before = failedPlan({}, [FAILED]);
  const saying = (message: string, names = `a at ${later(0)}`): CattlePlan => {
    const [complete, ...others] = (before.status?.conditions ?? []).slice(0, 3);
    const conditions = [
      { ...complete, type: 'Complete', status: 'False', message },
      ...others,
      failures(names),
    ];
    return { ...before, status: { ...before.status, conditions } };
  };
  const plan = saying('Job s/x failed on Node b: BackoffLimitExceeded: ');
  const job = jobFor(plan, [{ type: 'Failed', status: 'True', lastTransitionTime: later(0) }]);
  const { rollout } = gather(dialect, plan, worldOf(open, [job]), NOW);
  const words = 'the attempt failed on Node a: run refit why a';
  expect(told(dialect.project(rollout, plan, NOW), 'Complete')).toBe(`JobFailed ${words}`);
  const both = saying(words, `a at ${later(0)}, c at ${later(0)}`);
  const messages = dialect.reporting
    ?.planEvents?.(saying(words), both, rollout, [])
    .map(({ reason }) => reason.message);
  expect(messages).toContain('the attempt failed on Node c: run refit why c');
  expect(messages).not.toContain(words);
});
