/**
 * Proves which records of a large rollout are delayed until more has changed, for how long, and which records are never
 * delayed.
 */
import { describe, expect, test } from 'vitest';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { because } from '../model/reasons.ts';
import { type RecordedState, type Rollout, type Target, withTargets } from '../model/rollout.ts';
import { PLAN_HOLDS } from '../model/status-shards.ts';
import { batchMs, restOf } from './batching.ts';

const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `w${index}`);

/**
 * Returns a running rollout in which at most 240 targets may be in flight. The first 240 targets have been in flight
 * since T0.
 */
function running(count: number): Rollout {
  const stage = buildStage('worker', names(count), { maxInFlight: 240 });
  const rollout = buildRollout([stage], { phase: 'running' });
  return moved(rollout, 240, 'intended');
}

function moved(rollout: Rollout, count: number, state: RecordedState): Rollout {
  const targets = rollout.stages.flatMap((stage) => stage.targets).slice(0, count);
  return withTargets(
    rollout,
    targets.map((target): Target => ({ ...target, state, since: later(0) })),
  );
}

/**
 * Returns the rollout after the first `count` targets are done, and the same number of pending targets has taken their
 * slots.
 */
function followed(rollout: Rollout, count: number): Rollout {
  const pending = rollout.stages.flatMap(({ targets }) =>
    targets.filter(({ state }) => state === 'pending'),
  );
  const next = pending.slice(0, count).map((target): Target => ({ ...target, state: 'intended' }));
  return withTargets(moved(rollout, count, 'done'), next);
}

const LARGE = running(PLAN_HOLDS + 1);
const SOON = T0 + 1000;

test('a rollout that fits into its plan is recorded at every decision', () => {
  const small = running(PLAN_HOLDS);
  expect(batchMs(small, moved(small, 1, 'done'), SOON, false)).toBe(0);
});

test('what a record starts is signalled before more is recorded', () => {
  const small = running(50);
  expect(batchMs(small, moved(small, 1, 'done'), SOON, true)).toBe(1);
  const many = running(1_000);
  expect(batchMs(many, moved(many, 1, 'done'), SOON, true)).toBe(50);
  expect(batchMs(many, { ...moved(many, 1, 'done'), phase: 'done' }, SOON, true)).toBe(0);
});

test.each([
  [99, undefined],
  [100, 5],
  [1_000, 50],
  [PLAN_HOLDS, 250],
  [PLAN_HOLDS + 1, 1_000],
  [3 * PLAN_HOLDS, 1_000],
])('in a rollout of %d nodes, the pause between two decisions is %s ms', (count, ms) => {
  expect(restOf(running(count))).toBe(ms);
});

describe('a record of a large rollout', () => {
  test.each([
    ['one of 240 that is done waits', moved(LARGE, 1, 'done'), SOON, 9_000],
    ['fewer than one slot in 16 wait', moved(LARGE, 14, 'done'), SOON, 9_000],
    ['one slot in 16 is enough', moved(LARGE, 15, 'done'), SOON, 0],
    ['whoever follows makes no second change of a slot', followed(LARGE, 14), SOON, 9_000],
    ['ten seconds after the last record are enough', moved(LARGE, 1, 'done'), T0 + 10_000, 0],
    ['after a quiet minute nothing waits', moved(LARGE, 1, 'done'), T0 + MINUTE, 0],
    ['an end never waits', { ...moved(LARGE, 1, 'done'), phase: 'done' as const }, SOON, 0],
    ['a gate that holds all back is told at once', { ...LARGE, blocked: true }, SOON, 0],
    [
      'a failure is told at once',
      { ...moved(LARGE, 1, 'failed'), reason: because('TargetFailed', 'w0: no') },
      SOON,
      0,
    ],
  ])('%s', (_name, after, now, wanted) => {
    expect(batchMs(LARGE, after, now, false)).toBe(wanted);
  });

  test('a time in the future holds nothing back: the clock that wrote it was wrong', () => {
    const [first, second] = LARGE.stages.flatMap(({ targets }) => targets);
    if (!first || !second) throw new Error('there are thousands');
    const before = withTargets(LARGE, [{ ...first, state: 'done', since: later(HOUR) }]);
    const after = withTargets(before, [{ ...second, state: 'done', since: later(1000) }]);
    expect([SOON, T0 + 10_000].map((now) => batchMs(before, after, now, false))).toEqual([
      9_000, 0,
    ]);
  });

  test('the first record of a rollout never waits', () => {
    expect(batchMs({ ...LARGE, phase: 'new' }, LARGE, SOON, false)).toBe(0);
  });

  test('a record of a rollout that does not run never waits', () => {
    const [before, after] = [LARGE, moved(LARGE, 1, 'done')].map(
      (rollout): Rollout => ({ ...rollout, phase: 'new' }),
    );
    expect(before && after && batchMs(before, after, SOON, false)).toBe(0);
  });

  test('the end of a stage never waits', () => {
    const controller = buildStage('controller', ['c1'], { maxInFlight: 240 });
    const before = { ...LARGE, stages: [controller, ...LARGE.stages] };
    expect(batchMs(before, moved(before, 1, 'done'), SOON, false)).toBe(0);
  });
});
