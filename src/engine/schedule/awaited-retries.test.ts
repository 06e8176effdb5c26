/** Tests which failed targets are retried automatically, when, and what their failures block until then. */

import { expect, test } from 'vitest';
import { decide } from '../../../test/support/builders/decisions.ts';
import { failed, working } from '../../../test/support/builders/observations.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot, buildTargets } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { assess } from '../assess/assess.ts';
import { type Controls, NO_CONTROLS } from '../model/controls.ts';
import { because } from '../model/reasons.ts';
import type { Role, Rollout, Target } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { commandsFor } from '../turn/commands.ts';
import { awaitedRetries, dueRetries, retriedRunOf } from './awaited-retries.ts';

const RULE = { attempts: 3, backoffMs: 5 * MINUTE };
const POLICY = buildPolicy({ name: 'again', retry: RULE });
const w1 = buildTarget('w1', 'failed', { since: later(0) });

function snapshotOf(
  targets: readonly (Target | string)[],
  more: {
    readonly role?: Role;
    readonly attempts?: number | undefined;
    readonly controls?: Partial<Controls>;
    readonly rollout?: Partial<Rollout>;
    readonly canRetry?: boolean;
  } = {},
): Snapshot {
  const { role = 'worker', attempts, controls = {}, canRetry = true } = more;
  const rollout = buildRollout([buildStage(role, targets)], { phase: 'running', ...more.rollout });
  const key = rollout.stages[0]?.targets[0]?.key ?? '';
  const counted =
    attempts === undefined
      ? {}
      : { attempts: { run: retriedRunOf(rollout), counts: { [key]: attempts } } };
  const observation = failed('404', later(0));
  const snapshot = buildSnapshot(rollout, { w1: { observation } });
  return withParts(snapshot, {
    abilities: { canRetry },
    plan: { controls: { ...NO_CONTROLS, ...counted, ...controls } },
  });
}

test.each<[string, number | undefined, [attempt: number, minutes: number] | undefined]>([
  ['the first attempt failed', undefined, [2, 5]],
  ['the second attempt failed comes after twice the pause', 2, [3, 10]],
  ['the third attempt failed is none, because no attempt is left', 3, undefined],
  ['the recorded number is higher than the policy allows', 9, undefined],
])('the next attempt of a target if %s', (_name, attempts, expected) => {
  const [found] = awaitedRetries(snapshotOf([w1], { attempts }), POLICY);
  const next = found && [found.attempt, (found.dueMs - T0) / MINUTE];
  expect(next).toEqual(expected);
});

test('the pause before a retry is a day at most', () => {
  const retry = { attempts: 10, backoffMs: 8 * HOUR };
  const [found] = awaitedRetries(snapshotOf([w1], { attempts: 5 }), { retry });
  expect(found?.dueMs).toBe(T0 + 24 * HOUR);
});

test.each<[string, Snapshot]>([
  ['the dialect does not support it', snapshotOf([w1], { canRetry: false })],
  [
    'the dialect leaves a target that missed its deadline',
    withParts(
      snapshotOf([w1], { rollout: { reason: because('DeadlineExceeded', 'w1 took too long') } }),
      { abilities: { leavesLate: true } },
    ),
  ],
  [
    'the dialect leaves a target that was not uncordoned within its deadline',
    withParts(
      snapshotOf([w1], { rollout: { reason: because('UncordonTooLong', 'w1 took too long') } }),
      { abilities: { leavesLate: true } },
    ),
  ],
  ['the rollout is aborted', snapshotOf([w1], { controls: { abort: 'wrong' } })],
  ['the rollout has ended', snapshotOf([w1], { rollout: { phase: 'failed' } })],
  ['the target was refused', snapshotOf([buildTarget('w1', 'unsupported')])],
  ['its node is gone', { ...snapshotOf([w1]), targets: buildTargets({}) }],
])('nothing is tried again where %s', (_name, snapshot) => {
  expect(awaitedRetries(snapshot, POLICY)).toEqual([]);
});

test('a dialect that leaves late targets tries others again', () => {
  const reason = because('TargetFailed', 'w1: 404');
  const snapshot = withParts(snapshotOf([w1], { rollout: { reason } }), {
    abilities: { leavesLate: true },
  });
  expect(awaitedRetries(snapshot, POLICY)).toMatchObject([{ attempt: 2 }]);
});

test('the attempts of another run do not count', () => {
  const controls = { attempts: { run: 'other/run', counts: { 'worker/0/w1': 3 } } };
  expect(awaitedRetries(snapshotOf([w1], { controls }), POLICY)).toMatchObject([{ attempt: 2 }]);
});

test('an order at the time of the failure is the order of the next attempt', () => {
  const at = (time: number) => {
    const controls = { retries: new Map([['w1', time]]) };
    return awaitedRetries(snapshotOf([w1], { attempts: 2, controls }), POLICY)[0];
  };
  expect(at(T0)).toMatchObject({ attempt: 2, dueMs: T0, isOrdered: true });
  expect(at(T0 - 1)).toMatchObject({ attempt: 3, isOrdered: false });
});

test.each<[string, Snapshot]>([
  ['failed at a time that is none', snapshotOf([buildTarget('w1', 'failed', { since: 'soon' })])],
  [
    'keeps its slot',
    (() => {
      const stage = buildStage('worker', [w1], { failedHoldSlots: true });
      const snapshot = buildSnapshot(buildRollout([stage]));
      return withParts(snapshot, { abilities: { canRetry: true } });
    })(),
  ],
  [
    'is upgraded by a later stage',
    (() => {
      const stages = [
        buildStage('worker', [w1]),
        buildStage('worker', [buildTarget('w1', 'done')], { command: 1 }),
      ];
      return withParts(buildSnapshot(buildRollout(stages)), { abilities: { canRetry: true } });
    })(),
  ],
])('a target that %s is not tried again', (_title, snapshot) => {
  expect(awaitedRetries(snapshot, POLICY)).toEqual([]);
});

test('the attempts of 500 targets are counted, and no other target is tried again', () => {
  const counting = (others: number, own: Record<string, number> = {}) => {
    const snapshot = snapshotOf([w1]);
    const counts = Object.fromEntries(
      Array.from({ length: others }, (_, index): [string, number] => [`x${index}`, 2]),
    );
    const attempts = { run: retriedRunOf(snapshot.rollout), counts: { ...counts, ...own } };
    const parts = { plan: { controls: { ...NO_CONTROLS, attempts } } };
    return awaitedRetries(withParts(snapshot, parts), POLICY).length;
  };
  expect([counting(499), counting(500), counting(500, { '0/worker/w1': 2 })]).toEqual([1, 0, 1]);
});

test('an order keeps the counts of targets that are not done, and no others', () => {
  const open = snapshotOf([w1, buildTarget('w2', 'done'), buildTarget('w3', 'intended')]);
  const counts = { '0/worker/w2': 2, '0/worker/w3': 2, '0/worker/gone': 2 };
  const attempts = { run: retriedRunOf(open.rollout), counts };
  const snapshot = withParts(open, { plan: { controls: { ...NO_CONTROLS, attempts } } });
  const order = dueRetries(snapshot, POLICY, T0 + HOUR);
  expect(order?.counts).toEqual({ '0/worker/w1': 2, '0/worker/w3': 2 });
});

test('the time of an order is at least that of the failed attempt', () => {
  const momentAt = (since: string, attempt: string, now: number): string | undefined => {
    const snapshot = snapshotOf([buildTarget('w1', 'failed', { since })]);
    const [key = ''] = snapshot.rollout.stages.flatMap(({ targets }) =>
      targets.map((each) => each.key),
    );
    const targets = buildTargets({ [key]: { observation: failed('404', attempt) } });
    const retry = { attempts: 2, backoffMs: 0 };
    return dueRetries({ ...snapshot, targets }, { retry }, now)?.moments.get('w1');
  };
  expect(momentAt(later(0), later(0), T0 + MINUTE)).toBe(later(MINUTE));
  expect(momentAt(later(0), later(HOUR), T0 + MINUTE)).toBe(later(HOUR));
  expect(momentAt(later(0), 'soon', T0 + MINUTE)).toBe(later(MINUTE));
});

test('the identity of a run has the plan and its id', () => {
  expect(retriedRunOf(buildRollout([]))).toBe('plan-uid/run-1');
});

test('the order of a retry is written once the pause is over, with the number of the attempt', () => {
  const due = T0 + 5 * MINUTE;
  const open = snapshotOf([w1, buildTarget('w2', 'done')]);
  const key = open.rollout.stages[0]?.targets[0]?.key ?? '';
  expect(dueRetries(open, POLICY, due - 1)).toBeUndefined();
  expect(commandsFor(assess(open, POLICY, due - 1))).toEqual([{ kind: 'wake', afterMs: 1 }]);
  expect(commandsFor(assess(open, POLICY, due))).toMatchObject([
    {
      kind: 'retry',
      order: { counts: { [key]: 2 }, moments: new Map([['w1', later(5 * MINUTE)]]) },
    },
  ]);
});

test('an ordered attempt is recorded as pending, and its failure does not count meanwhile', () => {
  const controls = { retries: new Map([['w1', T0 + 5 * MINUTE]]) };
  const snapshot = snapshotOf([w1], { attempts: 2, controls });
  const { record } = decide(snapshot, POLICY, T0 + 6 * MINUTE);
  expect(record?.stages[0]?.targets).toMatchObject([{ name: 'w1', state: 'intended' }]);
  const observation = working('Restart', later(0));
  const { targets } = buildSnapshot(snapshot.rollout, { w1: { observation } });
  const { waits, record: ended } = decide({ ...snapshot, targets }, POLICY, T0 + 6 * MINUTE);
  expect(ended).toBeUndefined();
  expect(waits).toMatchObject([
    {
      reason: {
        message: 'w1 failed: attempt 2 of 3 when the work of the failed attempt has ended',
      },
    },
  ]);
});

test('a worker with attempts left does not count against the budget: others start, and the plan stays open', () => {
  expect(decide(snapshotOf([w1, 'w2']), POLICY, T0).record?.stages[0]?.targets).toMatchObject([
    { state: 'failed' },
    { state: 'intended' },
  ]);
  const alone = decide(snapshotOf([w1]), POLICY, T0);
  expect(alone.record).toBeUndefined();
  expect(alone.waits).toMatchObject([
    {
      target: 'w1',
      reason: { code: 'RetryWaits', message: `w1 failed: attempt 2 of 3 at ${later(5 * MINUTE)}` },
      ends: `the pause is over, at ${later(5 * MINUTE)}; to try it sooner, run refit retry w1`,
    },
  ]);
  expect(alone.recheckAfterMs).toBe(5 * MINUTE);
});

test('without an attempt left the failure counts, and the plan ends', () => {
  const { record } = decide(snapshotOf([w1, 'w2'], { attempts: 3 }), POLICY, T0);
  expect(record?.phase).toBe('failed');
});

test('nothing starts while a controller waits for its next attempt', () => {
  const c1 = buildTarget('w1', 'failed', { since: later(0) });
  const { record, waits } = decide(snapshotOf([c1, 'c2'], { role: 'controller' }), POLICY, T0);
  expect(record).toBeUndefined();
  expect(waits.map(({ reason }) => reason.message)).toContain(
    `nothing new starts: w1 failed: attempt 2 of 3 at ${later(5 * MINUTE)}`,
  );
});

test('a later stage does not start before the attempts of an earlier one', () => {
  const stages = [
    buildStage('worker', [w1], { id: 'first' }),
    buildStage('worker', ['w2'], { id: 'second' }),
  ];
  const snapshot = buildSnapshot(buildRollout(stages, { phase: 'running' }));
  expect(
    decide(withParts(snapshot, { abilities: { canRetry: true } }), POLICY, T0).record,
  ).toBeUndefined();
});

test('a group of the order waits for the attempts of the group before', () => {
  const policy = { ...POLICY, order: ['first=true'], maxFailures: 1 };
  const snapshot = snapshotOf([w1, 'w2']);
  const key = snapshot.rollout.stages[0]?.targets[0]?.key ?? '';
  const own = { labels: { first: 'true' }, observation: failed('404', later(0)) };
  const others = Object.fromEntries(
    snapshot.rollout.stages.flatMap(({ targets }) => targets.map((each) => [each.key, {}])),
  );
  const targets = buildTargets({ ...others, [key]: own });
  expect(
    decide({ ...snapshot, targets }, policy, T0).record?.stages[0]?.targets[1]?.state,
  ).not.toBe('intended');
});

test('a drain that stops the plan stops it once no attempt is left', () => {
  const reason = because('DrainTooLong', 'w1 was not drained within 1 h');
  const phaseOf = (attempts: number): string | undefined =>
    decide(snapshotOf([w1, 'w2'], { attempts, rollout: { reason } }), POLICY, T0).record?.phase;
  expect([phaseOf(2), phaseOf(3)]).toEqual([undefined, 'failed']);
});
