/**
 * Proves how and when conditions change. The transition time changes with the status or the message, but not with the
 * reason.
 */
import { expect, test } from 'vitest';
import { buildCattlePlan } from '../../../../test/support/builders/cattle-plans.ts';
import { HOUR, later, T0 } from '../../../../test/support/clock/times.ts';
import type { CattleCondition, CattlePlan } from '../../../api/cattle/plan.ts';
import {
  conditionOf,
  holds,
  says,
  stallsOf,
  withoutCondition,
  withStalls,
  withVerdict,
  withVerdicts,
} from './conditions.ts';

const NOW = T0 + HOUR;
const MINE: CattleCondition = { type: 'Mine', status: 'True' };
const KNOWN: CattleCondition = {
  type: 'Complete',
  status: 'False',
  reason: 'SyncJob',
  lastUpdateTime: later(0),
};
const planWith = (...conditions: readonly CattleCondition[]): CattlePlan => ({
  ...buildCattlePlan('p'),
  status: { latestVersion: 'v1', conditions: [...conditions] },
});
const bare = buildCattlePlan('p');
const verdict = { type: 'Complete', status: 'False', reason: 'SyncJob', message: '' } as const;

test('a new reason keeps the time; a new status or message sets it', () => {
  const after = (change: object, known = KNOWN) =>
    withVerdicts([known], [{ ...verdict, ...change }], NOW);
  expect(after({ reason: 'Resolved' })).toEqual([{ ...KNOWN, reason: 'Resolved' }]);
  expect(after({ status: 'True' })).toEqual([
    { ...KNOWN, status: 'True', lastUpdateTime: later(HOUR) },
  ]);
  expect(after({ message: 'new' })).toEqual([
    { ...KNOWN, message: 'new', lastUpdateTime: later(HOUR) },
  ]);
  const said = { ...KNOWN, message: 'old' };
  expect(after({ message: 'old' }, said)).toEqual([said]);
  expect(after({}, said), 'an empty message is left out').toEqual([
    { ...KNOWN, lastUpdateTime: later(HOUR) },
  ]);
});

test('a new condition comes last and has its time; others stay where they are', () => {
  const added = { ...verdict, type: 'Validated' };
  const { message: _message, ...written } = added;
  expect(withVerdicts([MINE, KNOWN], [added, verdict], NOW)).toEqual([
    MINE,
    KNOWN,
    { ...written, lastUpdateTime: later(HOUR) },
  ]);
});

test('a message keeps no control characters, so that it is the same when it is read again', () => {
  const odd = { ...verdict, message: 'a\u001bb' };
  const once = withVerdict(planWith(KNOWN), odd, NOW);
  expect(conditionOf(once, 'Complete')?.message).toBe('a\uFFFDb');
  expect(withVerdict(once, odd, NOW + HOUR)).toBe(once);
});

test('a Plan has a condition only with the same status, reason and message', () => {
  const plan = planWith(MINE, KNOWN);
  expect(says(plan, verdict)).toBe(true);
  for (const change of [
    { status: 'True' },
    { reason: 'Resolved' },
    { message: 'new' },
    { type: 'Validated' },
  ] as const)
    expect(says(plan, { ...verdict, ...change })).toBe(false);
  expect(says(bare, verdict)).toBe(false);
  expect(conditionOf({ metadata: bare.metadata, status: {} }, 'Complete')).toBeUndefined();
});

test('a Plan that already has the condition stays the same object', () => {
  const plan = planWith(MINE, KNOWN);
  expect(withVerdict(plan, verdict, NOW)).toBe(plan);
  expect(withVerdict(plan, { ...verdict, status: 'True' }, NOW).status).toEqual({
    latestVersion: 'v1',
    conditions: [MINE, { ...KNOWN, status: 'True', lastUpdateTime: later(HOUR) }],
  });
  expect(withVerdict(bare, verdict, NOW).status).toEqual({
    conditions: [{ ...KNOWN, lastUpdateTime: later(HOUR) }],
  });
});

test('a condition is removed, and the rest of the status stays', () => {
  const plan = planWith(MINE, KNOWN);
  expect(withoutCondition(plan, 'Mine')).toEqual(planWith(KNOWN));
  expect(withoutCondition(plan, 'Other')).toBe(plan);
  expect(withoutCondition(bare, 'Other')).toBe(bare);
});

const recorded = (plan: CattlePlan, stalls: Record<string, boolean>, now = NOW): CattlePlan =>
  withStalls(plan, new Map(Object.entries(stalls)), now);

test('a stall is recorded once it lasts, and stays until it ends', () => {
  const plan = planWith(MINE);
  expect(recorded(plan, { 'a waits': false })).toBe(plan);
  const told = recorded(plan, { 'b waits': true, 'a waits': false });
  expect(conditionOf(told, 'RefitStalled')).toEqual({
    type: 'RefitStalled',
    status: 'True',
    reason: 'Stalled',
    message: 'b waits',
    lastUpdateTime: later(HOUR),
  });
  expect(stallsOf(told)).toBe('b waits');
  expect(recorded(told, { 'b waits': false }, NOW + HOUR)).toBe(told);
  expect(recorded(told, {})).toEqual(plan);
  expect(stallsOf(plan)).toBeUndefined();
});

test('a recorded stall is found again although its message was cleaned', () => {
  const told = recorded(planWith(), { 'a\u001bb waits': true });
  expect(recorded(told, { 'a\u001bb waits': false })).toBe(told);
});

test('stalls are told in a fixed order, three of them at most', () => {
  const all = { 'd is stuck': true, 'b waits': true, 'a fails': true, 'c hangs': true };
  const message = stallsOf(recorded(planWith(), all));
  expect(message).toBe('a fails; b waits; c hangs; and 1 more');
  const reversed = Object.fromEntries(Object.entries(all).toReversed());
  expect(stallsOf(recorded(planWith(), reversed))).toBe(message);
});

test('a condition of a Job holds only if it is true', () => {
  const condition = { type: 'Failed', status: 'True' } as const;
  const job = { metadata: { name: 'j' }, status: { conditions: [condition] } };
  expect(holds(job, 'Failed')).toBe(condition);
  expect(holds(job, 'Complete')).toBeUndefined();
  const unknown = { ...job, status: { conditions: [{ ...condition, status: 'False' as const }] } };
  expect(holds(unknown, 'Failed')).toBeUndefined();
  expect(holds({ metadata: { name: 'j' } }, 'Failed')).toBeUndefined();
});
