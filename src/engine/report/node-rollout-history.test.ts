/** Tests the runs in the history of a NodeRollout, and what stays in the status after the plan was deleted. */
import { expect, test } from 'vitest';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type {
  NodeRollout,
  NodeRolloutRun,
  NodeRolloutStatus,
} from '../../api/refit/node-rollout.ts';
import { assess } from '../assess/assess.ts';
import { readPlan } from '../explain/plan-reading.ts';
import { because } from '../model/reasons.ts';
import type { RecordedState, Rollout } from '../model/rollout.ts';
import { type Outside, statusOf, statusOfDeleted } from './node-rollout-status.ts';

const NOW = T0 + 10 * MINUTE;
const COUNTS = { total: 1, done: 0, failed: 0, inProgress: 0, pending: 1, skipped: 0 };

function rolloutOf(state: RecordedState, endMs: number, more: Partial<Rollout> = {}): Rollout {
  const target = buildTarget('w1', state, { since: later(endMs) });
  return buildRollout([buildStage('worker', [target], { version: 'v2' })], more);
}

function runOf(id: string, more: Partial<NodeRolloutRun> = {}): NodeRolloutRun {
  return {
    id,
    planUid: 'plan-uid',
    started: later(-MINUTE),
    phase: 'running',
    counts: COUNTS,
    ...more,
  };
}

function withHistory(history: readonly NodeRolloutRun[]): NodeRollout {
  return {
    metadata: { name: 'plan' },
    spec: { plan: { apiVersion: 'v1', kind: 'Plan', name: 'plan', uid: 'plan-uid' } },
    status: { history: [...history] },
  };
}

function historyOf(
  rollout: Rollout,
  before: readonly NodeRolloutRun[],
  outside: Outside = {},
  now = NOW,
): NodeRolloutRun[] {
  const assessment = assess(buildSnapshot(rollout), buildPolicy(), now);
  const reading = readPlan(assessment, { waits: [] });
  return statusOf({ reading, outside }, withHistory(before), now).history ?? [];
}

const REPLACED = 'what the plan asks for changed while it ran, so another run replaced this one';

test('a plan whose next run is not recorded yet ends the run before', () => {
  expect(historyOf(rolloutOf('pending', 0, { phase: 'new' }), [runOf('run-0')])).toEqual([
    runOf('run-0', { phase: 'edited', ended: later(10 * MINUTE), message: REPLACED }),
  ]);
});

test('another run ends the run before, and keeps the runs of other plans', () => {
  const other = runOf('run-1', { planUid: 'another-uid', ended: later(0), phase: 'done' });
  const history = historyOf(rolloutOf('pending', 0), [runOf('run-0'), other]);
  expect(history.map(({ id, planUid, phase }) => `${planUid}/${id} ${phase}`)).toEqual([
    'plan-uid/run-1 running',
    'plan-uid/run-0 edited',
    'another-uid/run-1 done',
  ]);
});

test('a run keeps the start that was recorded first', () => {
  const [run] = historyOf(rolloutOf('pending', 5 * MINUTE), [runOf('run-1')]);
  expect([run?.started, run?.ended]).toEqual([later(-MINUTE), undefined]);
  const [unknown] = historyOf(rolloutOf('pending', 5 * MINUTE), []);
  expect(unknown?.started).toBe(later(5 * MINUTE));
});

test.each<[string, number, readonly NodeRolloutRun[], string]>([
  ['that the history does not have ends with its last target', 3, [], later(3 * MINUTE)],
  ['that was running ends now', 3, [runOf('run-1')], later(10 * MINUTE)],
  [
    'that had ended keeps its end',
    3,
    [runOf('run-1', { ended: later(4 * MINUTE) })],
    later(4 * MINUTE),
  ],
  [
    'that was retried and ended again ends with the retried target',
    6,
    [runOf('run-1', { ended: later(4 * MINUTE) })],
    later(6 * MINUTE),
  ],
])('a run %s', (_title, minutes, before, ended) => {
  const [run] = historyOf(rolloutOf('done', minutes * MINUTE, { phase: 'done' }), before);
  expect(run?.ended).toBe(ended);
});

test('a run that ended keeps its version, and a run in progress gets the version of the plan', () => {
  const old = runOf('run-1', { version: 'v1' });
  const done = rolloutOf('done', MINUTE, { phase: 'done' });
  const versionAfter = (rollout: Rollout, before: NodeRolloutRun): string | undefined =>
    historyOf(rollout, [before])[0]?.version;
  expect(versionAfter(done, { ...old, ended: later(2 * MINUTE) })).toBe('v1');
  expect(versionAfter(done, old)).toBe('v2');
  expect(versionAfter(rolloutOf('intended', MINUTE), { ...old, ended: later(2 * MINUTE) })).toBe(
    'v2',
  );
});

test('a run that was edited while it ran is still recorded when it ends', () => {
  const edited = rolloutOf('done', MINUTE, { phase: 'done', edit: 'it names w2 now' });
  const [run] = historyOf(edited, [runOf('run-1')]);
  expect([run?.id, run?.phase, run?.ended]).toEqual(['run-1', 'done', later(10 * MINUTE)]);
});

test('the id of a trace stays when a leader sends no traces', () => {
  const running = rolloutOf('intended', 0);
  const traceOf = (before: readonly NodeRolloutRun[], outside: Outside): string | undefined =>
    historyOf(running, before, outside)[0]?.traceId;
  expect(traceOf([], { traceId: 'new' })).toBe('new');
  expect(traceOf([runOf('run-1', { traceId: 'old' })], { traceId: 'new' })).toBe('new');
  expect(traceOf([runOf('run-1', { traceId: 'old' })], {})).toBe('old');
  expect(traceOf([runOf('run-1')], {})).toBeUndefined();
});

test.each<[string, Partial<Rollout>, NodeRolloutRun['rollsBack']]>([
  ['nothing', {}, undefined],
  ['a run', { rollsBack: 'uid/id1' }, { run: 'uid/id1' }],
  [
    'a run with a reason',
    { rollsBack: 'uid/id1', rollsBackReason: 'errors\nrose' },
    { run: 'uid/id1', reason: 'errors rose' },
  ],
])('the history shows that a plan rolls back %s', (_title, more, rollsBack) => {
  expect(historyOf(rolloutOf('intended', 0, more), [])[0]?.rollsBack).toEqual(rollsBack);
});

test('a run without failures shows no list of failures, and a known reason replaces the reason before', () => {
  const [good] = historyOf(rolloutOf('intended', 0), []);
  expect(good).not.toHaveProperty('failures');
  const before = runOf('run-1', {
    failures: [
      { node: 'w0', reason: 'TargetFailed', message: 'another node' },
      { node: 'w1', reason: 'TargetFailed', message: 'first' },
    ],
  });
  const reason = because('TargetFailed', 'w1: second');
  const [told] = historyOf(rolloutOf('failed', 0, { phase: 'failed', reason }), [before]);
  expect(told?.failures).toEqual([{ node: 'w1', reason: 'TargetFailed', message: 'second' }]);
  const [untold] = historyOf(rolloutOf('failed', 0, { phase: 'failed' }), [before]);
  expect(untold?.failures).toEqual([{ node: 'w1', reason: 'TargetFailed', message: 'first' }]);
});

test.each<[RecordedState, string]>([
  ['missing', 'it does not exist'],
  ['unsupported', 'the plan has no download for its platform, or its node refuses the plan'],
])('a %s target is shown with a sentence of its own', (state, message) => {
  const [run] = historyOf(rolloutOf(state, 0, { phase: 'failed' }), []);
  expect(run?.failures?.map(({ node, message: said }) => [node, said]) ?? []).toEqual([
    ['w1', message],
  ]);
});

test('the history says in printable words why a run ended, and nothing about a run without a reason', () => {
  const reason = because('TargetFailed', 'w1:\n404');
  const [bad] = historyOf(rolloutOf('failed', 0, { phase: 'failed', reason }), []);
  expect([bad?.reason, bad?.message]).toEqual(['TargetFailed', 'w1: 404']);
  const [good] = historyOf(rolloutOf('done', 0, { phase: 'done' }), []);
  expect(good).not.toHaveProperty('message');
});

const GONE = { reason: 'PlanGone', message: 'the plan was deleted' };
const TIMES = { lastTransitionTime: later(10 * MINUTE) };

function deleted(status: NodeRolloutStatus | undefined, generation?: number): NodeRolloutStatus {
  const metadata = { name: 'plan', ...(generation === undefined ? {} : { generation }) };
  const { spec } = withHistory([]);
  return statusOfDeleted({ metadata, spec, ...(status === undefined ? {} : { status }) }, NOW);
}

test('the status of a plan that was deleted while it ran shows its end, and nothing that lasts only while it runs', () => {
  const status: NodeRolloutStatus = {
    phase: 'running',
    version: 'v2',
    progress: '0/1',
    eta: { at: later(0), earliest: later(0), latest: later(0) },
    waiting: { reason: 'Paused', message: 'x', since: later(0) },
    wave: { current: 1, total: 2 },
    checks: [],
    hooks: [],
    silences: [],
    history: [runOf('run-1'), runOf('run-0', { phase: 'done', ended: later(0) })],
  };
  expect(deleted(status, 3)).toEqual({
    phase: 'deleted',
    version: 'v2',
    progress: '0/1',
    observedGeneration: 3,
    planDeleted: later(10 * MINUTE),
    conditions: ['Completed', 'Progressing', 'Waiting'].map((type) => ({
      type,
      status: 'False',
      ...GONE,
      observedGeneration: 3,
      ...TIMES,
    })),
    history: [
      runOf('run-1', { phase: 'deleted', ended: later(10 * MINUTE), paused: true }),
      runOf('run-0', { phase: 'done', ended: later(0) }),
    ],
  });
});

const COMPLETED = {
  type: 'Completed',
  status: 'True',
  reason: 'Completed',
  message: 'every target is done',
  lastTransitionTime: later(0),
} as const;

test('a plan that was deleted after its end has completed all the same', () => {
  const history = [runOf('run-1', { phase: 'done', ended: later(0) })];
  expect(deleted({ phase: 'done', conditions: [COMPLETED], history })).toEqual({
    phase: 'done',
    planDeleted: later(10 * MINUTE),
    conditions: [
      COMPLETED,
      { type: 'Progressing', status: 'False', ...GONE, ...TIMES },
      { type: 'Waiting', status: 'False', ...GONE, ...TIMES },
    ],
    history,
  });
});

test.each<[string, NodeRolloutStatus | undefined]>([
  ['before it began', { phase: 'new' }],
  ['before anything was shown of it', undefined],
])('a plan that was deleted %s is shown as deleted, without a run', (_title, status) => {
  const { phase, conditions = [], history } = deleted(status);
  expect([phase, history]).toEqual(['deleted', []]);
  expect(conditions.map(({ type }) => type)).toEqual(['Completed', 'Progressing', 'Waiting']);
});

test('a status that shows the deletion already stays the same object', () => {
  const status: NodeRolloutStatus = { phase: 'deleted', planDeleted: later(0) };
  expect(deleted(status)).toBe(status);
});
