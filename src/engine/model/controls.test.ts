/** Tests that pause, abort and retry are read from a plan, and that a retry clears only earlier failures. */

import { describe, expect, test } from 'vitest';
import { decide } from '../../../test/support/builders/decisions.ts';
import { failed, succeeded, working } from '../../../test/support/builders/observations.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import {
  ABORT_ANNOTATION,
  controlsOn,
  NO_CONTROLS,
  PAUSE_ANNOTATION,
  RETRY_ANNOTATION,
  withRetry,
} from './controls.ts';
import type { Observation } from './facts.ts';
import { because } from './reasons.ts';
import type { Stage } from './rollout.ts';

const on = (annotations: Record<string, string>) =>
  controlsOn({ metadata: { name: 'plan', annotations } });

test.each([
  [{}, 'it is being deleted'],
  [{ [ABORT_ANNOTATION]: 'wrong version' }, 'wrong version'],
])(
  'a plan that is being deleted counts as aborted, with the recorded reason if there is one',
  (annotations, abort) => {
    const metadata = { name: 'plan', annotations, deletionTimestamp: later(0) };
    expect(controlsOn({ metadata })).toMatchObject({ abort });
  },
);

test.each<[string, Record<string, string>, object]>([
  ['nothing', {}, NO_CONTROLS],
  ['a pause', { [PAUSE_ANNOTATION]: 'true' }, { paused: true }],
  [
    'a pause with its moment',
    { [PAUSE_ANNOTATION]: later(1000) },
    { paused: true, pausedSince: later(1000) },
  ],
  [
    'a pause in other words is a pause',
    { [PAUSE_ANNOTATION]: 'please' },
    { paused: true, pausedSince: undefined },
  ],
  [
    'a pause with its moment and its reason',
    { [PAUSE_ANNOTATION]: `${later(1000)} the database is moved` },
    { paused: true, pausedSince: later(1000), pauseReason: 'the database is moved' },
  ],
  [
    'a pause with a reason alone',
    { [PAUSE_ANNOTATION]: 'the database is moved' },
    { paused: true, pausedSince: undefined, pauseReason: 'the database is moved' },
  ],
  ['a pause by a number', { [PAUSE_ANNOTATION]: '1' }, { paused: true, pausedSince: undefined }],
  ['a pause that is over', { [PAUSE_ANNOTATION]: 'false' }, { paused: false }],
  ['an abort', { [ABORT_ANNOTATION]: 'wrong version' }, { abort: 'wrong version' }],
  ['an abort without a word', { [ABORT_ANNOTATION]: '' }, { abort: 'no reason was given' }],
  [
    'retries',
    { [RETRY_ANNOTATION]: `w1@${later(0)}, w2@${later(1000)}` },
    {
      retries: new Map([
        ['w1', T0],
        ['w2', T0 + 1000],
      ]),
    },
  ],
  ['a retry that cannot be read', { [RETRY_ANNOTATION]: 'w1,w2@soon' }, { retries: new Map() }],
])('the annotations of a plan are read as controls: %s', (_name, annotations, controls) => {
  expect(on(annotations)).toMatchObject(controls);
});

test('a retry of the same target takes the place of an earlier one', () => {
  const text = withRetry(
    withRetry(withRetry(undefined, 'w1', later(0)), 'w2', later(0)),
    'w1',
    later(1000),
  );
  expect(text).toBe(`w2@${later(0)},w1@${later(1000)}`);
});

test.each<[string, number, Observation, object]>([
  ['it is tried again', MINUTE, failed('404'), { phase: 'running', state: 'pending' }],
  ['a failure after the order stays', -MINUTE, failed('404'), { phase: 'failed', state: 'failed' }],
  [
    'what is still at work comes to its end first',
    MINUTE,
    working('Restart'),
    { phase: 'failed', state: 'failed' },
  ],
])('a failed target, and an order to try it again: %s', (_name, ordered, observation, wanted) => {
  const stage = buildStage('worker', [buildTarget('w1', 'failed', { since: later(0) })]);
  const reason = because('TargetFailed', 'w1 failed');
  const snapshot = buildSnapshot(buildRollout([stage], { phase: 'failed', reason }), {
    w1: { observation, ready: false },
  });
  const controls = { ...NO_CONTROLS, retries: new Map([['w1', T0 + ordered]]) };
  const after =
    decide(withParts(snapshot, { plan: { controls } }), buildPolicy(), T0 + 2 * MINUTE).record ??
    snapshot.rollout;
  expect({ phase: after.phase, state: after.stages[0]?.targets[0]?.state }).toEqual(wanted);
});

test('a deadline below one second does not make a decision that never ends', () => {
  const stage = buildStage('worker', [buildTarget('w1', 'intended')]);
  const policy = buildPolicy({ targetDeadlineMs: 500 });
  expect(decide(buildSnapshot(buildRollout([stage])), policy, T0 + 999).signals).toHaveLength(1);
});

test('nothing is retried while part of the record is unread', () => {
  const stage = buildStage('worker', [buildTarget('w1', 'failed')]);
  const unread = because('RecordUnread', 'a status shard is missing');
  const snapshot = buildSnapshot(buildRollout([stage], { phase: 'failed', unread }));
  const controls = { ...NO_CONTROLS, retries: new Map([['w1', T0]]) };
  expect(
    decide(withParts(snapshot, { plan: { controls } }), buildPolicy(), T0 + MINUTE).record,
  ).toBeUndefined();
});

/** Times are recorded with a precision of one second. Everything in this test happens within one second. */
test('a retry in the second of the failure is a new attempt', () => {
  const controls = { ...NO_CONTROLS, retries: new Map([['w1', T0]]) };
  const decided = (state: 'failed' | 'intended', since: string, observation: Observation) => {
    const stage = buildStage('worker', [buildTarget('w1', state, { since })]);
    const reason = because('TargetFailed', 'w1 failed');
    const rollout = buildRollout([stage], {
      phase: state === 'failed' ? 'failed' : 'running',
      reason,
    });
    return decide(
      withParts(buildSnapshot(rollout, { w1: { observation } }), { plan: { controls } }),
      buildPolicy(),
      T0 + 10,
    );
  };
  const again = decided('failed', later(0), failed('404')).record?.stages[0]?.targets[0];
  expect(again).toMatchObject({ state: 'intended', since: later(1000) });
  expect(decided('intended', later(1000), failed('404')).signals).toHaveLength(1);
  const attempt = later(1000);
  expect(
    decided('intended', attempt, failed('404', attempt)).record?.stages[0]?.targets[0]?.state,
  ).toBe('failed');
});

test('an old intent of a retry gets a new name, not that of the failed attempt', () => {
  const stage = buildStage('worker', [buildTarget('w1', 'intended', { since: later(1000) })]);
  const controls = { ...NO_CONTROLS, retries: new Map([['w1', T0]]) };
  const snapshot = buildSnapshot(buildRollout([stage]), { w1: { observation: failed('404') } });
  const { record } = decide(
    withParts(snapshot, { plan: { controls } }),
    buildPolicy(),
    T0 + 2 * MINUTE,
  );
  expect(record?.stages[0]?.targets[0]).toMatchObject({
    state: 'intended',
    since: later(2 * MINUTE),
  });
});

test('an upgraded target that is not Ready fails once, also in the second of the retry', () => {
  const stage = buildStage('worker', [buildTarget('w1', 'failed', { since: later(0) })]);
  const controls = { ...NO_CONTROLS, retries: new Map([['w1', T0]]) };
  const facts = {
    w1: { observation: succeeded(later(-3 * HOUR)), ready: false, watchedMs: 3 * HOUR },
  };
  const snapshot = withParts(buildSnapshot(buildRollout([stage], { phase: 'failed' }), facts), {
    plan: { controls },
  });
  expect(decide(snapshot, buildPolicy(), T0 + 10).record).toMatchObject({
    phase: 'failed',
    stages: [{ targets: [{ state: 'failed', since: later(1000) }] }],
  });
});

describe('a retry of a worker that failed in the first of two commands', () => {
  const failedFirst = buildStage('worker', [buildTarget('w1', 'failed')], { command: 0 });
  const controls = { ...NO_CONTROLS, retries: new Map([['w1', T0]]) };
  const firstStateWhile = (second: Stage): string | undefined => {
    const rollout = buildRollout([failedFirst, second]);
    const isMoving = second.targets[0]?.state === 'intended';
    const facts = isMoving ? { c1: { observation: working('Restart') } } : {};
    const snapshot = withParts(buildSnapshot(rollout, facts), { plan: { controls } });
    const after = decide(snapshot, buildPolicy({ maxFailures: 1 }), T0 + MINUTE).record ?? rollout;
    return after.stages[0]?.targets[0]?.state;
  };

  test.each<[string, Stage, string]>([
    [
      'it waits while a controller moves for the second: two must not be away at once',
      buildStage('controller', [buildTarget('c1', 'intended')], { command: 1 }),
      'failed',
    ],
    [
      'it stays as it is where the second has brought it further: the first would take it back',
      buildStage('worker', [buildTarget('w1', 'done')], { command: 1 }),
      'failed',
    ],
    [
      'it goes where the second has not begun',
      buildStage('worker', [buildTarget('w1')], { command: 1 }),
      'intended',
    ],
  ])('%s', (_name, second, state) => {
    expect(firstStateWhile(second)).toBe(state);
  });
});
