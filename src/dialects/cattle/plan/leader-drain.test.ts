/**
 * Proves how a held Job and its node end: after a drain, an abort, a failure, the deletion of the Plan, and a change of
 * the setting.
 */

import { expect, test } from 'vitest';
import {
  buildCattlePlan,
  type CattleSpec,
} from '../../../../test/support/builders/cattle-plans.ts';
import { begun } from '../../../../test/support/builders/cattle-records.ts';
import type { Decision } from '../../../../test/support/builders/decisions.ts';
import { decide } from '../../../../test/support/builders/decisions.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildTarget } from '../../../../test/support/builders/targets.ts';
import { buildWorldOf } from '../../../../test/support/builders/worlds-of-kinds.ts';
import { HOUR, later, T0 } from '../../../../test/support/clock/times.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { withCordon, writeOwner } from '../../../drain/cordon-marks.ts';
import { ownerOf, withStages } from '../../../engine/model/rollout.ts';
import { DEFAULT_POLICY, type RolloutPolicy } from '../../../engine/policy/rollout-policy.ts';
import { gather, gatherOrphaned } from '../../../engine/snapshot/gather.ts';
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
import { isCordonOf, isHeld, markOf, withDrainOf } from './leader-drain.ts';
import { CONTROLLER_LABEL } from './names.ts';
import { trimJob } from './plan-jobs.ts';

const configOf = (drainInJob: boolean) => ({
  name: 'controller',
  namespace: 'system-upgrade',
  job: { ...DEFAULT_JOB_SETTINGS, drainInJob },
});
const LEADER = configOf(false);
/** The fields of a Plan that allow what its drain refuses. */
const FIELDS = {
  of: 'the Plan',
  localData: 'spec.drain.deleteEmptydirData: true',
  unmanagedPods: 'spec.drain.force: true',
};
const hash = latestHash(buildCattlePlan('p'), 'v1.2.3', []);
const open = buildNode('a', { labels: { 'kubernetes.io/hostname': 'a' } }, 'True');

function planOf(spec: Partial<CattleSpec>, annotations?: Record<string, string>): CattlePlan {
  const plan = buildCattlePlan('p', spec);
  const conditions = [
    'Complete False SyncJob',
    'Validated True PlanIsValid',
    'LatestResolved True Version',
  ].map((each) => {
    const [type = '', status = '', reason = ''] = each.split(' ');
    return { type, status, reason };
  });
  return {
    ...plan,
    metadata: { ...plan.metadata, ...(annotations && { annotations }) },
    status: { conditions, latestVersion: 'v1.2.3', latestHash: hash, applying: ['a'] },
  };
}

function jobFor(plan: CattlePlan, config = LEADER): Job {
  const job = jobOf(config, { plan, node: open, version: 'v1.2.3', hash, settings: config.job });
  return { ...job, metadata: { ...job.metadata, uid: 'j', creationTimestamp: later(0) } };
}

function policyOf(plan: CattlePlan, config = LEADER): RolloutPolicy {
  return cattle(config).planRules?.apply(plan, DEFAULT_POLICY) ?? DEFAULT_POLICY;
}

function decided(plan: CattlePlan, node: Node, made: readonly Job[], config = LEADER): Decision {
  const known = begun(node, plan, hash);
  const world = buildWorldOf([nodes, [known]], [jobs, made], [pods, []], [secrets, []]);
  return decide(gather(cattle(config), plan, world, T0 + 1000), policyOf(plan, config), T0 + 1000);
}

const cordoned = (plan: CattlePlan): Node => {
  const source = { uid: plan.metadata.uid ?? '', kind: 'Plan', mark: markOf(plan.metadata) };
  return withCordon(open, ownerOf({ source }, { since: later(0) }));
};

test.each<[string, Partial<CattleSpec>, boolean, string[]]>([
  ['by default, the Job drains its node', { drain: {} }, true, ['drain']],
  [
    'with SYSTEM_UPGRADE_JOB_DRAIN_IN_JOB=false, the controller drains the node instead of the Job',
    { drain: {} },
    false,
    [],
  ],
  ['and cordons', { cordon: true }, false, []],
  ['but not what only kubectl can do', { drain: { disableEviction: true } }, false, ['drain']],
  [
    'such as to stop waiting for pods',
    { drain: { skipWaitForDeleteTimeout: 5 } },
    false,
    ['drain'],
  ],
  ['or to refuse pods of DaemonSets', { drain: { ignoreDaemonSets: false } }, false, ['drain']],
  ['nor without a cordon', {}, false, []],
])('the Job: %s', (_name, spec, drainInJob, init) => {
  const { template, suspend } = (jobFor(planOf(spec), configOf(drainInJob)).spec ?? {}) as {
    suspend?: boolean;
    template: { spec: { initContainers?: { name: string }[] } };
  };
  expect((template.spec.initContainers ?? []).map(({ name }) => name)).toEqual(init);
  expect(suspend).toBe(
    !drainInJob && init.length === 0 && Object.keys(spec).length > 0 ? true : undefined,
  );
});

test.each<[string, Partial<CattleSpec>, boolean, string | undefined]>([
  ['that drains itself', { drain: {} }, true, 'withDrain'],
  ['that cordons itself', { cordon: true }, true, 'withoutDrain'],
  ['that drains as only kubectl can', { drain: { disableEviction: true } }, false, 'withDrain'],
  ['that does not drain', {}, false, 'withoutDrain'],
  ['that waits for the drain', { drain: {} }, false, undefined],
  ['that waits for the cordon', { cordon: true }, false, undefined],
])('the moment before the work of a Job %s', (_name, spec, drainInJob, unheld) => {
  expect(policyOf(planOf(spec), configOf(drainInJob)).drain.unheld).toBe(unheld);
});

test('the leader drains with the options of the Plan, within its timeout or the deadline of the Job', () => {
  const podSelector = { matchLabels: { app: 'web' } };
  const drain = { timeout: '90s', gracePeriod: 5, deleteEmptydirData: false, podSelector };
  const { drain: rules, stepDeadlines } = policyOf(planOf({ drain }));
  expect(rules.options).toEqual({
    localData: 'refuse',
    unmanagedPods: 'refuse',
    gracePeriodSeconds: 5,
    podSelector: 'app=web,!upgrade.cattle.io/controller',
    fields: FIELDS,
  });
  expect(stepDeadlines.drain).toBe(90_000);
  expect(
    policyOf(planOf({ drain: { force: true }, jobActiveDeadlineSecs: 60 })).stepDeadlines.drain,
  ).toBe(60_000);
  expect(policyOf(planOf({ drain: {} })).stepDeadlines.drain).toBe(600_000);
});

type Drain = NonNullable<CattleSpec['drain']>;

const optionsOf = (drain: Drain) => policyOf(planOf({ drain })).drain.options;

test('without options a drain evicts pods with local data, refuses unmanaged ones, and keeps their grace periods', () => {
  const usual = {
    localData: 'evict',
    unmanagedPods: 'refuse',
    podSelector: `!${CONTROLLER_LABEL}`,
    fields: FIELDS,
  };
  expect(optionsOf({})).toEqual(usual);
  expect(optionsOf({ gracePeriod: -1, skipWaitForDeleteTimeout: 0 })).toEqual(usual);
  expect(optionsOf({ gracePeriod: 0 })).toEqual({ ...usual, gracePeriodSeconds: 0 });
  expect(optionsOf({ force: true })).toEqual({ ...usual, unmanagedPods: 'evict' });
  expect(optionsOf({ deleteEmptydirData: false })).toEqual({ ...usual, localData: 'refuse' });
  const fields = { ...FIELDS, localData: 'spec.drain.deleteLocalData: true' };
  expect(optionsOf({ deleteLocalData: false })).toEqual({ ...usual, localData: 'refuse', fields });
  expect(optionsOf({ disableEviction: true })).toEqual({ ...usual, deletes: true });
});

test.each<[string, Partial<CattleSpec>, number]>([
  ['a time in nanoseconds', { drain: { timeout: 90e9 } }, 90_000],
  ['a time that cannot be read counts as none', { drain: { timeout: 'soon' } }, 600_000],
  ['so does a time of zero', { drain: { timeout: '0s' } }, 600_000],
  [
    'a Job without a deadline',
    { cordon: true, jobActiveDeadlineSecs: 0 },
    Number.POSITIVE_INFINITY,
  ],
])('the time of a drain: %s', (_name, spec, expected) => {
  expect(policyOf(planOf(spec)).stepDeadlines.drain).toBe(expected);
});

test('the leader drains, or the Job does, or nobody', () => {
  const who = (spec: Partial<CattleSpec>, drainInJob = false) => {
    const { enabled, byWork, cordonOnly, softTaint } = policyOf(
      planOf(spec),
      configOf(drainInJob),
    ).drain;
    return { enabled, byWork, cordonOnly, softTaint };
  };
  const common = { enabled: true, byWork: false, softTaint: false };
  expect(who({ drain: {} })).toEqual({ ...common, cordonOnly: false });
  expect(who({ cordon: true })).toEqual({ ...common, cordonOnly: true });
  const inJob = { enabled: false, byWork: true, softTaint: false };
  expect(who({ drain: {} }, true)).toEqual({ ...inJob, cordonOnly: false });
  for (const drain of [{ disableEviction: true }, { skipWaitForDeleteTimeout: 60 }])
    expect(who({ drain })).toEqual({ ...inJob, cordonOnly: false });
  for (const spec of [{}, { cordon: false }, { drain: { ignoreDaemonSets: false } }])
    expect(who(spec).enabled).toBe(false);
});

test('a Job that drains does not wait for budgets, whatever the policy says', () => {
  const waiting: RolloutPolicy = {
    ...DEFAULT_POLICY,
    drain: { ...DEFAULT_POLICY.drain, waitsForBudgets: true },
  };
  const waits = (drainInJob: boolean) => {
    const { job } = configOf(drainInJob);
    return withDrainOf(planOf({ drain: {} }), waiting, job).drain.waitsForBudgets;
  };
  expect([waits(true), waits(false)]).toEqual([false, true]);
});

test('a Job that drains does not wait for its selector of pods to be corrected', () => {
  const podSelector = { matchExpressions: [{ key: 'app', operator: 'Wrong' }] };
  const { heldBy, drain } = policyOf(planOf({ drain: { podSelector } }), configOf(true));
  expect(heldBy).toBeUndefined();
  expect(drain).toMatchObject({
    enabled: false,
    options: { podSelector: `!${CONTROLLER_LABEL}` },
  });
  expect(policyOf(planOf({ drain: {} })).heldBy).toBeUndefined();
});

test('the leader recognizes its cordon by the Plan, at any time', () => {
  const plan = planOf({ drain: {} });
  const owner = markOf(plan.metadata);
  expect(owner).toEqual({
    kind: 'CattlePlan',
    plan: 'system-upgrade/p-uid',
    attempt: later(0),
  });
  expect(markOf({ name: 'p' })).toEqual({ kind: 'CattlePlan', plan: '/', attempt: '' });
  const cordonBy = (change: Partial<typeof owner>) =>
    withCordon(open, writeOwner({ ...owner, ...change }));
  expect(isCordonOf(cordonBy({}), plan)).toBe(true);
  expect(isCordonOf(cordonBy({ attempt: later(5000) }), plan)).toBe(true);
  expect(isCordonOf(cordonBy({ plan: 'system-upgrade/another' }), plan)).toBe(false);
  expect(isCordonOf(open, plan)).toBe(false);
});

test('a held Job is suspended and marked by Refit', () => {
  const job = jobFor(planOf({ drain: {} }));
  const { annotations: _annotations, ...metadata } = job.metadata;
  expect(isHeld(job)).toBe(true);
  expect(isHeld({ ...job, metadata }), 'suspended by a person').toBe(false);
  expect(isHeld({ ...job, spec: { ...job.spec, suspend: false } }), 'started').toBe(false);
  expect(isHeld({ metadata: job.metadata })).toBe(false);
});

test("the policy's rules for pods count beside the drain options of the Plan", () => {
  const podRules = [{ pods: [{}], action: 'leave', turn: 0 }] as const;
  const rules = { podRules, byPriority: true, jobsWaitMs: 5, evictionRequests: true };
  const options = { ...DEFAULT_POLICY.drain.options, ...rules };
  const policy = { ...DEFAULT_POLICY, drain: { ...DEFAULT_POLICY.drain, options } };
  const plan = planOf({ drain: {} });
  const ruled = cattle(LEADER).planRules?.apply(plan, policy)?.drain.options;
  expect(ruled).toEqual({ ...policyOf(plan).drain.options, ...rules });
});

test.each([{ operator: 'Wrong' }, { operator: 'In' }])(
  'with a selector of pods that is invalid (%j), a held Job waits',
  (wrong) => {
    const plan = planOf({
      drain: { podSelector: { matchExpressions: [{ key: 'app', ...wrong }] } },
    });
    expect(policyOf(plan).heldBy).toBe(
      'the drain of Plan p, whose spec.drain.podSelector is invalid,',
    );
    expect(decided(plan, cordoned(plan), [jobFor(plan)]).nodeActions).toEqual([]);
  },
);

test.each<[string, Partial<CattleSpec>, (plan: CattlePlan) => Node, string]>([
  ['is cordoned first', { drain: {} }, () => open, 'cordon'],
  ['then drained', { drain: {} }, cordoned, 'drain'],
  ['or not, if the Plan only cordons', { cordon: true }, cordoned, 'acknowledge'],
])('the node of a held Job %s', (_name, spec, nodeOf, kind) => {
  const plan = planOf(spec);
  const { nodeActions, signals } = decided(plan, nodeOf(plan), [jobFor(plan)]);
  expect([nodeActions.map((each) => each.kind), signals]).toEqual([[kind], []]);
});

test('a drain stays the same from one decision to the next, so that its time comes to an end', () => {
  const plan = planOf({ drain: {} });
  const world = buildWorldOf(
    [nodes, [cordoned(plan)]],
    [jobs, [jobFor(plan)]],
    [pods, []],
    [secrets, []],
  );
  const asked = (now: number): string[] => {
    const owners: string[] = [];
    const known = { drainOf: (_node: string, owner: string) => void owners.push(owner) };
    const { targets, rollout } = gather(cattle(LEADER), plan, world, now, known);
    for (const { target } of withStages(rollout)) targets.get(target.key);
    return owners;
  };
  expect(asked(T0 + 1000)).toHaveLength(1);
  expect(asked(T0 + 9000)).toEqual(asked(T0 + 1000));
});

test('the Job starts once its node is drained', () => {
  const plan = planOf({ cordon: true });
  const job = jobFor(plan);
  const world = buildWorldOf([nodes, [cordoned(plan)]], [jobs, [job]], [pods, []], [secrets, []]);
  const [action] = decided(plan, cordoned(plan), [job]).nodeActions;
  const dialect = cattle(LEADER);
  const rollout = dialect.resolve(plan, world, T0);
  const sent =
    action && dialect.signal.acknowledge?.(world, rollout, action.stage, action.target, T0);
  expect(sent).toEqual({
    kind: 'replace',
    resource: jobs,
    object: { ...job, spec: { ...job.spec, suspend: false } },
  });
});

test('a Job that a person suspended is left to that person', () => {
  const plan = planOf({});
  const job = jobFor(plan);
  const suspended = { ...job, spec: { ...job.spec, suspend: true } };
  const { nodeActions, signals } = decided(plan, open, [suspended]);
  expect([nodeActions, signals]).toEqual([[], []]);
});

const closed: Node = { ...open, spec: { unschedulable: true } };

/** Returns the mark of the Node after the leader has recorded that the node starts. */
function markAtStart(plan: CattlePlan, node: Node, drainInJob: boolean): string | undefined {
  const dialect = cattle(configOf(drainInJob));
  const world = buildWorldOf([nodes, [node]], [jobs, []], [pods, []], [secrets, []]);
  const rollout = dialect.resolve(plan, world, new Date(T0));
  const target = { ...buildTarget('a', 'intended'), since: later(HOUR) };
  const [stage] = rollout.stages;
  if (!stage) throw new Error('a Plan has one stage');
  const write = dialect.signal.remember?.(world, rollout, stage, target, plan);
  if (write?.kind !== 'replace') throw new Error('the Node is written');
  return write.object.metadata.annotations?.['cordon.refit.upgrade.cattle.io/p'];
}

test('a cordon of a person, after the start of the node and before its Job, is not that of the leader', () => {
  const plan = planOf({ drain: {} });
  const known = begun(closed, plan, hash);
  expect(markAtStart(plan, known, false)).toBe('found');
  expect(markAtStart(plan, known, true), 'a Job may be gone').toBe(`ours ${hash}`);
  expect(markAtStart(plan, closed, false), 'so may one of the original').toBe(`ours ${hash}`);
  const edited = { ...plan, spec: { ...plan.spec, version: 'v1.2.4' } } as CattlePlan;
  expect(markAtStart(edited, known, false), 'an edited Plan').toBe('found');
  const lasting = begun(cordoned(plan), plan, hash);
  expect(markAtStart(plan, lasting, false), 'the leader names itself').toBeUndefined();
  const found = annotated(begun(open, plan, hash), {
    'cordon.refit.upgrade.cattle.io/p': 'found',
  });
  expect(markAtStart(plan, found, false), 'nobody cordons it any more').toBeUndefined();
});

test('the cache keeps a held Job whole, since it is written back', () => {
  const job = jobFor(planOf({ drain: {} }));
  expect(trimJob(job)).toBe(job);
});

test('an abort deletes a Job that waits for its drain, and then makes the node schedulable', () => {
  const plan = planOf({ drain: {} }, { 'refit.upgrade.cattle.io/abort': 'enough' });
  const { nodeActions } = decided(plan, cordoned(plan), [jobFor(plan)]);
  expect(nodeActions.map(({ kind }) => kind)).toEqual(['cancel']);
  const { record } = decided(plan, cordoned(plan), []);
  const released = record && cattle(LEADER).project(record, plan, T0);
  const after = released && decided(released, cordoned(plan), []).nodeActions;
  expect(after).toMatchObject([{ kind: 'clean-up', cordon: true }]);
});

test('a node that could not be drained is schedulable again, and its Job stays held', () => {
  const plan = planOf({ drain: {} });
  const failed = {
    type: 'RefitFailedNodes',
    status: 'True',
    message: `a at ${later(0)}; generation 0`,
  };
  const over = {
    ...plan,
    status: { ...plan.status, conditions: [...(plan.status?.conditions ?? []), failed] },
  };
  const { nodeActions, signals } = decided(over, cordoned(plan), [jobFor(plan)]);
  expect(nodeActions).toMatchObject([{ kind: 'clean-up', cordon: true }]);
  expect(signals).toEqual([]);
});

test('a controller whose Jobs drain replaces a held Job, as the original would', () => {
  const plan = planOf({ drain: {} });
  const job = jobFor(plan);
  const config = configOf(true);
  const { signals, nodeActions } = decided(plan, cordoned(plan), [job], config);
  const world = buildWorldOf([nodes, [cordoned(plan)]], [jobs, [job]], [pods, []], [secrets, []]);
  const dialect = cattle(config);
  const sent = signals.map((each) =>
    dialect.signal.send(world, dialect.resolve(plan, world, T0), each, plan),
  );
  expect([nodeActions, sent]).toEqual([[], [{ kind: 'delete', resource: jobs, object: job }]]);
});

/** Returns the node actions of the leader for orphaned work, while only `plans` exist. */
function leftOver(
  plans: readonly CattlePlan[],
  node: Node,
  made: readonly Job[],
  config = LEADER,
): string[] {
  const world = buildWorldOf([nodes, [node]], [jobs, made], [pods, []], [secrets, []]);
  const dialect = cattle(config);
  return (dialect.orphanedWork?.plans(world, plans) ?? []).flatMap(({ rollout, plan }) => {
    const snapshot = gatherOrphaned({ dialect, plan, rollout, world, known: {} }, T0);
    const { nodeActions } = decide(snapshot, DEFAULT_POLICY, T0);
    return nodeActions.map(({ kind }) => kind);
  });
}

test('Refit removes a cordon whose Plan is deleted, but no cordon of another namespace or dialect', () => {
  const plan = planOf({ drain: {} });
  const foreign = withCordon(open, `other/uid/${later(0)}/CattlePlan`);
  const ofK0s = withCordon(open, `uid/${later(0)}/Plan`);
  expect(leftOver([], cordoned(plan), [])).toEqual(['clean-up']);
  for (const node of [foreign, ofK0s]) expect(leftOver([], node, [])).toEqual([]);
  expect(leftOver([plan], cordoned(plan), [jobFor(plan)])).toEqual([]);
});

test.each([false, true])(
  'Refit deletes a suspended Job of an earlier hash and uncordons its node, also if Jobs drain: %s',
  (inJob) => {
    const plan = planOf({ drain: {} });
    const { applying: _a, ...status } = plan.status ?? {};
    const dropped = { ...plan, status: { ...status, latestHash: 'another' } };
    expect(leftOver([dropped], cordoned(plan), [jobFor(plan)], configOf(inJob))).toEqual([
      'clean-up',
      'cancel',
    ]);
    const selected = { ...dropped, status: { ...dropped.status, applying: ['a'] } };
    expect(leftOver([selected], cordoned(plan), [jobFor(plan)])).toEqual(['cancel']);
    const started = { ...jobFor(plan), spec: { ...jobFor(plan).spec, suspend: false } };
    expect(leftOver([dropped], cordoned(plan), [started])).toEqual([]);
  },
);

test('a Job whose node was deleted is deleted, held or not, but not one that has ended', () => {
  const plan = planOf({ drain: {} });
  const other = buildNode('b', {}, 'True');
  const job = jobFor(plan);
  const started = { ...job, spec: { ...job.spec, suspend: false } };
  const ended = {
    ...started,
    status: { conditions: [{ type: 'Complete', status: 'True' as const }] },
  };
  expect([job, started, ended].map((each) => leftOver([plan], other, [each]))).toEqual([
    ['cancel'],
    ['cancel'],
    [],
  ]);
  expect(leftOver([], other, [started])).toEqual([]);
});
