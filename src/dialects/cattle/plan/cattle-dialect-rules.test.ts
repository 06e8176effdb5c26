/** Proves what the dialect tells the engine about one Plan: its rules, its waits, and the objects on which it works. */
import { describe, expect, test } from 'vitest';
import {
  buildCattlePlan,
  type CattleSpec,
} from '../../../../test/support/builders/cattle-plans.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildRollout } from '../../../../test/support/builders/rollouts.ts';
import { buildStage } from '../../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../../test/support/builders/targets.ts';
import { buildWorldOf } from '../../../../test/support/builders/worlds-of-kinds.ts';
import { later, T0 } from '../../../../test/support/clock/times.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { cattlePlans } from '../../../api/kinds.ts';
import { DEFAULT_POLICY } from '../../../engine/policy/rollout-policy.ts';
import { type Job, jobs, type Node, nodes, pods, secrets } from '../../../kube/resources.ts';
import { cattle, cattleView } from './cattle-dialect.ts';
import { DEFAULT_JOB_SETTINGS } from './config.ts';
import { jobOf } from './job.ts';
import { windowsOf } from './window.ts';

const configOf = (drainInJob: boolean) => ({
  name: 'system-upgrade-controller',
  namespace: 'system-upgrade',
  job: { ...DEFAULT_JOB_SETTINGS, drainInJob },
});
const dialect = cattle(configOf(true));
const node = buildNode('a', { labels: { 'kubernetes.io/hostname': 'a' } });
const draining = buildCattlePlan('p', { drain: {} });

function jobFor(plan: CattlePlan, drainInJob = true): Job {
  const config = configOf(drainInJob);
  return jobOf(config, { plan, node, version: 'v1.2.3', hash: 'h', settings: config.job });
}

const worldOf = (
  made: readonly Job[] = [],
  present: readonly Node[] = [node],
  plans: readonly CattlePlan[] = [],
) => buildWorldOf([nodes, present], [jobs, made], [pods, []], [cattlePlans, plans]);

describe('the policy of a Plan', () => {
  const window = { days: ['fri'], startTime: '22:00', endTime: '06:00' };
  const policyOf = (spec: Partial<CattleSpec>, status: CattlePlan['status'] = {}) =>
    dialect.planRules?.apply({ ...buildCattlePlan('p', spec), status }, DEFAULT_POLICY);

  test('has the window of the Plan until the first node is in progress', () => {
    expect(policyOf({ window })?.planWindows).toEqual(windowsOf(window));
    expect(policyOf({ window }, { applying: ['a'] })).not.toHaveProperty('planWindows');
  });

  test('has no window if the Plan has none, or one that cannot be read', () => {
    expect(policyOf({})).not.toHaveProperty('planWindows');
    expect(policyOf({ window: { ...window, startTime: 'soon' } })).not.toHaveProperty(
      'planWindows',
    );
  });

  test('has the window of a Plan without a status, too', () => {
    const plan = buildCattlePlan('p', { window });
    expect(dialect.planRules?.apply(plan, DEFAULT_POLICY).planWindows).toEqual(windowsOf(window));
  });

  test('has no deadlines, because Jobs have their own', () => {
    expect(policyOf({})?.targetDeadlineMs).toBe(Number.POSITIVE_INFINITY);
  });
});

describe('commands that only read infer whether the leader drains', () => {
  const drains = (plan: CattlePlan, made: readonly Job[] = []): boolean | undefined => {
    const policy = cattleView.planRules?.apply(plan, DEFAULT_POLICY, worldOf(made));
    return policy?.drain.enabled;
  };
  const waiting = (reason: string): CattlePlan => ({
    ...draining,
    status: { conditions: [{ type: 'RefitWaits', status: 'True', reason }] },
  });

  test.each<[string, CattlePlan, readonly Job[], boolean]>([
    ['nothing says so', draining, [], false],
    ['a Job of others without annotations', draining, [{ metadata: { name: 'j' } }], false],
    ['a Job that drains itself', draining, [jobFor(draining)], false],
    [
      'a Job that waits for the leader',
      draining,
      [jobFor(draining), jobFor(draining, false)],
      true,
    ],
    ['its condition says so', waiting('GateBeforeDrain'), [], true],
    ['its condition says otherwise', waiting('Gate'), [], false],
  ])('%s', (_name, plan, made, wanted) => {
    expect(drains(plan, made)).toBe(wanted);
  });

  test.each([
    [true, 'Gate'],
    [false, 'GateBeforeDrain'],
  ])('the condition of a wait says it: drained in the Job %s', (drainInJob, reason) => {
    const rollout = buildRollout([buildStage('worker', ['a'])], { blocked: true });
    const { status } = cattle(configOf(drainInJob)).project(rollout, draining, T0);
    const waits = status?.conditions?.find(({ type }) => type === 'RefitWaits');
    expect(waits?.reason).toBe(reason);
  });
});

describe('a Plan whose prepare waits for another Plan', () => {
  const waitingFor = (...args: string[]): CattlePlan => ({
    ...buildCattlePlan('agents', { prepare: { image: 'img', args } }),
    status: { latestVersion: 'v1' },
  });
  const other = (complete: string, latestVersion: string): CattlePlan => ({
    ...buildCattlePlan('servers'),
    status: { latestVersion, conditions: [{ type: 'Complete', status: complete }] },
  });
  const SERVERS = 'Plan system-upgrade/servers';

  test.each<[string, CattlePlan, readonly CattlePlan[], string | undefined]>([
    ['there is no such Plan', waitingFor('prepare', 'servers'), [], SERVERS],
    ['it is not complete', waitingFor('prepare', 'servers'), [other('False', 'v1')], SERVERS],
    ['it has another version', waitingFor('prepare', 'servers'), [other('True', 'v2')], SERVERS],
    ['it is complete', waitingFor('prepare', 'servers'), [other('True', 'v1')], undefined],
    ['the command is another one', waitingFor('check', 'servers'), [], undefined],
    ['no Plan is named', waitingFor('prepare'), [], undefined],
    [
      'its own version is not known yet',
      buildCattlePlan('agents', { prepare: { image: 'img', args: ['prepare', 'servers'] } }),
      [other('True', 'v1')],
      SERVERS,
    ],
    ['nothing is prepared', buildCattlePlan('agents'), [], undefined],
  ])('%s', (_name, plan, plans, wanted) => {
    const world = worldOf([], [], plans);
    expect(dialect.nodeSharing?.awaits?.(plan, world)?.plan).toBe(wanted);
    expect(cattleView.nodeSharing?.awaits?.(plan, world)?.plan).toBe(wanted);
  });
});

describe('a claim on a node stays', () => {
  const working = jobFor(draining);
  const complete: Job = {
    ...working,
    status: { conditions: [{ type: 'Complete', status: 'True' }] },
  };
  const unowned = { ...working, metadata: { ...working.metadata, ownerReferences: [] } };

  test.each<[string, readonly Job[], Node, boolean]>([
    ['while a Job works on it', [complete, working], node, true],
    ['not after its Job has ended', [complete], node, false],
    ['not for a Job on another node', [working], buildNode('b'), false],
    ['not for a Job that no Plan owns', [unowned], node, false],
    ['not without a Job', [], node, false],
  ])('%s', (_name, made, on, wanted) => {
    expect(dialect.nodeSharing?.claims?.isAtWork(worldOf(made), on)).toBe(wanted);
  });
});

test('a target is its Node, or its Job if the Node was deleted', () => {
  const stage = buildStage('worker', ['a']);
  const target = buildTarget('a');
  const job = jobFor(draining);
  expect(dialect.objectOf(stage, target, worldOf([job]))).toBe(node);
  expect(dialect.objectOf(stage, target, worldOf([job], []))).toBe(job);
  expect(dialect.objectOf(stage, target, worldOf([], []))).toBeUndefined();
  expect(dialect.drainDelegation?.nodeOf(stage, target, worldOf([job]))).toBe(node);
});

test('a Secret counts for the hash as the world shows it', () => {
  const plan = buildCattlePlan('p', { secrets: [{ name: 's', path: 's' }] });
  const resolved = (text: string) => {
    const secret = { metadata: { name: 's', namespace: 'system-upgrade' }, data: { a: text } };
    return dialect.resolve(
      plan,
      buildWorldOf([nodes, [node]], [jobs, []], [secrets, [secret]]),
      T0,
    );
  };
  const first = resolved('eA==');
  const second = resolved('eQ==');
  expect([first?.problems, second?.problems]).toEqual([[], []]);
  expect(first?.id).not.toBe(second?.id);
});

test('no API server is asked, because a Plan does not say which nodes are controllers', () => {
  expect(dialect.endpoints(worldOf())).toEqual([]);
});

test('a Plan is behind only with an image that installs its version', () => {
  const runs = { ...node, status: { nodeInfo: { kubeletVersion: 'v1.36.3+k3s1' } } };
  const stage = buildStage('worker', ['a'], { version: 'v1.37.0-k3s1' });
  const isBehind = (plan: CattlePlan) => dialect.versions?.isBehind(runs, stage, plan);
  const { spec: _, ...empty } = draining;
  expect([
    isBehind(buildCattlePlan('p', { upgrade: { image: 'rancher/k3s-upgrade' } })),
    isBehind(draining),
    isBehind(empty),
  ]).toEqual([true, false, false]);
});

test('the last answer of a channel that fails now is told', () => {
  const conditions = [{ type: 'RefitChannelFails', status: 'True', message: 'no answer' }];
  const unknownOf = (plan: CattlePlan) => dialect.reporting?.unknownOf?.(plan);
  expect(unknownOf({ ...draining, status: { conditions } })).toBe('no answer');
  expect(unknownOf(draining)).toBeUndefined();
});

test('no Plan is taken back without a person, who chooses the image', () => {
  expect(dialect.rollBack).toEqual({
    byHand:
      'a Plan of Rancher needs an image that can install an older version, which only a person can choose; run refit rollback for the Plan',
  });
});

test('the controller is the dialect cattle, whose status has conditions', () => {
  const { name, statusRecord, planObjects, drainDelegation, plans } = dialect;
  expect([name, plans, statusRecord]).toEqual(['cattle', cattlePlans, { hasConditions: true }]);
  expect(planObjects).toEqual({
    controlPrefix: 'refit.upgrade.cattle.io/',
    ordersByUid: true,
    namespace: 'system-upgrade',
  });
  expect(drainDelegation?.always).toBe(true);
});

test('a Job of a node that was deleted is orphaned', () => {
  const job = {
    ...jobFor(draining),
    metadata: { ...jobFor(draining).metadata, creationTimestamp: later(0) },
  };
  const left = (present: readonly Node[]) =>
    dialect.orphanedWork?.plans(worldOf([job], present), [draining]).length;
  expect([left([]), left([node])]).toEqual([1, 0]);
});
