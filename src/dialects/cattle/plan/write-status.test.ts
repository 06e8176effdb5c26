/** Proves what the status of a Plan reports about a rollout: its conditions, and the nodes in progress. */
import { expect, test } from 'vitest';
import {
  buildCattlePlan,
  type CattleSpec,
} from '../../../../test/support/builders/cattle-plans.ts';
import { buildRollout } from '../../../../test/support/builders/rollouts.ts';
import { buildStage } from '../../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../../test/support/builders/targets.ts';
import { HOUR, later, T0 } from '../../../../test/support/clock/times.ts';
import type { CattleCondition, CattlePlan } from '../../../api/cattle/plan.ts';
import { because } from '../../../engine/model/reasons.ts';
import type { RecordedState, Rollout } from '../../../engine/model/rollout.ts';
import { defined } from '../../../util/json.ts';
import { hostOf, project } from './write-status.ts';

type Status = CattlePlan['status'];

/** The status that a running rollout has after its first record. */
const SETTLED: Status = {
  latestVersion: 'v1.2.3',
  latestHash: 'hash',
  conditions: [{ type: 'Complete', status: 'False', reason: 'SyncJob' }],
};

/** The test begins at 08:00 on a Friday, so this window opens four hours later. */
const NOON = { days: ['fri'], startTime: '12:00', endTime: '13:00' };

/**
 * Returns a rollout with these targets. Each text has the name of a node and the state of its target, for example `b
 * intended`.
 */
function rolloutOf(targets: readonly string[], more: Partial<Rollout> = {}): Rollout {
  const stage = buildStage(
    'worker',
    targets.map((each) => {
      const [name = '', state] = each.split(' ');
      return buildTarget(name, state as RecordedState);
    }),
    { version: 'v1.2.3' },
  );
  const keyed = stage.targets.map((target) => ({ ...target, key: `host-${target.name}/worker` }));
  const stages = targets.length === 0 ? [] : [{ ...stage, targets: keyed }];
  return buildRollout(stages, { id: 'hash', ...more });
}

interface Written {
  readonly spec?: Partial<CattleSpec>;
  readonly status?: Status;
  readonly now?: number;
  readonly gate?: string;
}

function statusOf(rollout: Rollout, { spec, status, now = T0, gate }: Written = {}) {
  const plan = { ...buildCattlePlan('p', spec), ...(status && { status }) };
  return project(rollout, plan, now, defined({ gate })).status ?? {};
}

const text = ({ status, reason, message }: CattleCondition): string =>
  `${status} ${reason} ${message ?? ''}`.trim();

/** Returns the text of the condition, or undefined if the Plan does not have the condition. */
function told(type: string, ...written: Parameters<typeof statusOf>): string | undefined {
  const found = statusOf(...written).conditions?.find((condition) => condition.type === type);
  return found && text(found);
}

const complete = (...written: Parameters<typeof statusOf>) => told('Complete', ...written);
const saying = (reason: string, message?: string): Status => ({
  ...SETTLED,
  conditions: [
    { type: 'Complete', status: 'False', reason, ...(message === undefined ? {} : { message }) },
  ],
});

test('the status names the version, the hash, and the hosts in progress in the order of their nodes', () => {
  const rollout = rolloutOf(['b intended', 'c intended', 'd done', 'e pending', 'a failed']);
  expect(statusOf(rollout)).toMatchObject({
    latestVersion: 'v1.2.3',
    latestHash: 'hash',
    applying: ['host-a', 'host-b', 'host-c'],
  });
  expect(hostOf(buildTarget('a', 'done', { key: 'host-a/worker' }))).toBe('host-a');
});

test('what is not known or not in progress is not in the status', () => {
  const status = { ...SETTLED, applying: ['host-a'], other: 'stays' } as Status;
  const written = statusOf(rolloutOf([], { id: '' }), { status });
  expect(Object.keys(written).toSorted()).toEqual(['conditions', 'other']);
  expect(Object.keys(statusOf(rolloutOf(['a done'])))).not.toContain('applying');
});

test('the Plan says SyncJob while the nodes in progress change, and then keeps its reason', () => {
  const rollout = rolloutOf(['a intended', 'b pending']);
  expect(complete(rollout, { status: SETTLED })).toBe('False SyncJob');
  const resolved = saying('Resolved');
  expect(complete(rollout, { status: resolved })).toBe('False SyncJob');
  expect(complete(rollout, { status: { ...resolved, applying: ['host-a'] } })).toBe(
    'False Resolved',
  );
  const ended = rolloutOf(['a done', 'b pending']);
  expect(complete(ended, { status: { ...resolved, applying: ['host-a'] } })).toBe('False SyncJob');
  expect(complete(ended, { status: SETTLED })).toBe('False SyncJob');
});

test.each<[string, Status]>([
  ['nothing is recorded', {}],
  ['it was complete', { ...SETTLED, conditions: [{ type: 'Complete', status: 'True' }] }],
  ['it has another hash', { ...SETTLED, latestHash: 'older' }],
  ['it waited', saying('Waiting')],
  ['a Job had failed', saying('JobFailed')],
  ['a Job was refused', saying('ValidationFailed')],
  ['it was not ready', saying('NotReady')],
])('an open Plan is resolved anew if %s', (_what, status) => {
  expect(complete(rolloutOf(['a pending']), { status })).toBe('False Resolved');
});

test('a Plan is complete when its rollout is done, and not ready while it has a problem', () => {
  const done = rolloutOf(['a done'], { phase: 'done' });
  expect(complete(done, { status: saying('SyncJob', 'old') })).toBe('True Complete');
  const problems = [because('InvalidPlan', 'wrong')];
  expect(complete(rolloutOf(['a done'], { phase: 'done', problems }))).toBe(
    'False NotReady plan is not valid and resolved',
  );
  expect(told('Validated', rolloutOf([], { problems }))).toBe('False Error wrong');
});

test('a failed Job is told without the name of the node before the sentence of the original', () => {
  const sentence = 'Job s/x failed on Node a: BackoffLimitExceeded: ';
  const failed = (message: string) =>
    complete(rolloutOf(['a failed'], { reason: because('TargetFailed', message) }));
  expect(failed(`node-a: ${sentence}`)).toBe(`False JobFailed ${sentence.trim()}`);
  expect(failed('a: Job.batch is too large')).toBe('False JobFailed a: Job.batch is too large');
  expect(failed('the node a: Job x')).toBe('False JobFailed the node a: Job x');
  expect(complete(rolloutOf(['a failed', 'c failed', 'b unsupported']))).toBe(
    'False JobFailed the attempt failed on Node a: run refit why a; further failed nodes: b, c',
  );
});

test('a node that was not uncordoned after its Job is told with this reason, and with the further failed nodes', () => {
  const reason = because(
    'UncordonTooLong',
    'a was not uncordoned within its deadline: node a is not Ready',
  );
  const written = complete(rolloutOf(['a failed', 'b failed'], { reason }));
  expect(written).toBe(`False UncordonTooLong ${reason.message}; further failed nodes: b`);
});

test('an abort leaves the message of the failure as it was', () => {
  const aborted = rolloutOf(['a failed'], {
    phase: 'failed',
    reason: because('Aborted', 'the plan was aborted: enough'),
  });
  expect(complete(aborted, { status: saying('JobFailed', 'Job x failed') })).toBe(
    'False JobFailed Job x failed',
  );
  expect(complete(aborted)).toBe('False JobFailed the attempt failed on Node a: run refit why a');
  expect(told('RefitAborted', aborted)).toBe('True Aborted the plan was aborted: enough');
});

test('only an abort that ended the rollout is told as one', () => {
  const reason = because('Aborted', 'the plan was aborted: enough');
  expect(told('RefitAborted', rolloutOf(['a intended'], { reason }))).toBeUndefined();
  const other = because('TargetFailed', 'a: no');
  expect(
    told('RefitAborted', rolloutOf(['a failed'], { phase: 'failed', reason: other })),
  ).toBeUndefined();
  expect(told('RefitAborted', rolloutOf(['a failed'], { phase: 'failed' }))).toBeUndefined();
});

test('a Job that the API server refused is told with its reason', () => {
  const reason = because('TargetRefused', 'a: no such volume');
  const refused = rolloutOf(['a unsupported', 'b intended'], { reason });
  expect(complete(refused)).toBe('False ValidationFailed a: no such volume');
  expect(told('RefitFailedNodes', refused)).toBe(
    `True ValidationFailed a refused at ${later(0)}; generation 0`,
  );
  expect(complete(rolloutOf(['a unsupported', 'b failed'], { reason }))).toMatch(
    /^False JobFailed/,
  );
});

test('a blocked Plan waits for its window, but not once it is open, over, or has none', () => {
  const blocked = (more: Partial<Rollout> = {}) =>
    rolloutOf(['a pending'], { blocked: true, ...more });
  const waiting = 'False Waiting current time is not within configured window';
  const spec = { window: NOON };
  const status = saying('Resolved');
  for (const phase of ['new', 'running'] as const)
    expect(complete(blocked({ phase }), { spec, status })).toBe(waiting);
  expect(complete(blocked({ phase: 'failed' }), { spec, status })).toBe('False Resolved');
  expect(complete(blocked(), { spec, status, now: T0 + 4.5 * HOUR })).toBe('False Resolved');
  expect(complete(blocked(), { status })).toBe('False Resolved');
  expect(complete(blocked({ blocked: false }), { spec, status })).toBe('False Resolved');
  const unknown = { window: { ...NOON, timeZone: 'Mars' } };
  expect(complete(blocked(), { spec: unknown, status }), 'a window that cannot be read').toBe(
    'False Resolved',
  );
});

test('a Plan that a gate holds back says how to see which, until its rollout ends', () => {
  const words =
    'a slot is free, but no node may start yet; run: refit why --plan cattle/system-upgrade/p';
  const blocked = (more: Partial<Rollout> = {}) =>
    rolloutOf(['a pending'], { blocked: true, ...more });
  expect(told('RefitWaits', blocked())).toBe(`True Gate ${words}`);
  expect(told('RefitWaits', blocked({ phase: 'new' }))).toBe(`True Gate ${words}`);
  expect(told('RefitWaits', blocked(), { gate: 'GateBeforeDrain' })).toBe(
    `True GateBeforeDrain ${words}`,
  );
  expect(told('RefitWaits', blocked({ phase: 'failed' }))).toBeUndefined();
  expect(told('RefitWaits', blocked({ blocked: false }))).toBeUndefined();
});

test('a Plan that is done without any node says so', () => {
  expect(told('RefitNoTargets', rolloutOf([], { phase: 'done' }))).toBe(
    'True NoTargets there was no target, so nothing was done',
  );
  expect(told('RefitNoTargets', rolloutOf(['a done'], { phase: 'done' }))).toBeUndefined();
  expect(told('RefitNoTargets', rolloutOf([]))).toBeUndefined();
});

test("Refit's own conditions end when they are no longer true, and conditions of others stay", () => {
  const own = ['RefitFailedNodes', 'RefitWaits', 'RefitAborted', 'RefitNoTargets', 'RefitNext'];
  const conditions = ['Other', ...own].map((type) => ({ type, status: 'True' }));
  const typesAfter = (rollout: Rollout) =>
    statusOf(rollout, { status: { ...SETTLED, conditions } }).conditions?.map(({ type }) => type);
  const always = ['Complete', 'Validated', 'LatestResolved'];
  expect(typesAfter(rolloutOf(['a pending']))).toEqual(['Other', ...always]);
  expect(typesAfter(rolloutOf(['a failed']))).toEqual(['Other', 'RefitFailedNodes', ...always]);
});

test.each([
  ['another version', { latestHash: 'earlier' }, later(HOUR)],
  ['the same version', { latestHash: 'hash' }, later(0)],
])('for %s after %j, the time of the condition LatestResolved is %s', (_, before, expected) => {
  const resolved: CattleCondition = {
    type: 'LatestResolved',
    status: 'True',
    reason: 'Version',
    lastUpdateTime: later(0),
  };
  const status = { ...SETTLED, ...before, conditions: [resolved] };
  const written = statusOf(rolloutOf(['a pending']), { status, now: T0 + HOUR });
  expect(written.conditions).toContainEqual({ ...resolved, lastUpdateTime: expected });
});
