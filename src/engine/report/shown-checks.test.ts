/**
 * Tests the results of health checks in a NodeRollout: what is written, how rarely it is written, and what commands
 * read back.
 */
import { expect, test } from 'vitest';
import { later, T0 } from '../../../test/support/clock/times.ts';
import type { NodeRollout } from '../../api/refit/node-rollout.ts';
import type { CheckResult } from '../../health/checks.ts';
import { checksShown, resultsIn, steadyChecks } from './shown-checks.ts';

const FAILING: CheckResult = {
  name: 'error-rate',
  state: 'failing',
  message: 'the value is 0.07, above max 0.01',
  since: T0,
  at: T0 + 15_000,
};

function rolloutWith(checks: ReturnType<typeof checksShown>): NodeRollout {
  const head = { apiVersion: 'upgrade.refit.dev/v1alpha1', kind: 'NodeRollout' };
  const status = checks === undefined ? {} : { checks };
  const plan = { apiVersion: 'v1', kind: 'Plan', name: 'a', uid: 'u' };
  return { ...head, metadata: { name: 'a' }, spec: { plan }, status };
}

test('a result is shown with its state and times, and read back for the same plan only', () => {
  const shown = checksShown([FAILING]);
  expect(shown).toEqual([
    {
      name: 'error-rate',
      state: 'Failing',
      message: FAILING.message,
      since: later(0),
      at: later(15_000),
    },
  ]);
  expect(resultsIn(rolloutWith(shown), 'u')).toEqual([FAILING]);
  expect(resultsIn(rolloutWith(shown), 'another')).toBeUndefined();
  expect(resultsIn(rolloutWith(undefined), 'u')).toBeUndefined();
  expect(resultsIn(undefined, 'u')).toBeUndefined();
  expect(checksShown([])).toBeUndefined();
});

test('the Nodes that a check is about are shown and read back, unless there are too many', () => {
  const about = (count: number): CheckResult => ({
    ...FAILING,
    nodes: Array.from({ length: count }, (_, at) => `w${at}`),
  });
  expect(resultsIn(rolloutWith(checksShown([about(2)])), 'u')).toEqual([about(2)]);
  expect(resultsIn(rolloutWith(checksShown([about(100)])), 'u')).toEqual([about(100)]);
  expect(resultsIn(rolloutWith(checksShown([about(101)])), 'u')).toEqual([FAILING]);
});

test.each<[string, Partial<CheckResult>, 'kept' | 'written']>([
  ['another value soon after', { message: 'the value is 0.08', at: T0 + 30_000 }, 'kept'],
  ['another value a minute later', { message: 'the value is 0.08', at: T0 + 75_000 }, 'written'],
  ['another state', { state: 'failing', since: T0 + 30_000, at: T0 + 30_000 }, 'written'],
  ['another name', { name: 'latency', at: T0 + 30_000 }, 'written'],
])('a check that has %s since it was shown is %s', (_title, more, expected) => {
  const before = checksShown([{ ...FAILING, state: 'passing' }]);
  const next = checksShown([{ ...FAILING, state: 'passing', ...more }]);
  expect(steadyChecks(next, before)).toEqual(expected === 'kept' ? before : next);
});

test('at most a hundred checks are shown, each with at most 1024 characters', () => {
  const many = Array.from({ length: 101 }, (_, at) => ({ ...FAILING, name: `c${at}` }));
  const shown = checksShown([{ ...FAILING, message: 'x'.repeat(2000) }, ...many]);
  expect(shown).toHaveLength(100);
  expect(shown?.[0]?.message).toHaveLength(1024);
});

test('without results nothing is shown, and nothing is kept of earlier results', () => {
  expect(checksShown()).toBeUndefined();
  expect(steadyChecks(undefined, checksShown([FAILING]))).toBeUndefined();
  expect(steadyChecks(checksShown([FAILING]), undefined)).toEqual(checksShown([FAILING]));
});

test('a passing check is written anew if it passes since another time, or failed before', () => {
  const passing = { ...FAILING, state: 'passing' } as const;
  const next = checksShown([passing]);
  expect(steadyChecks(next, checksShown([{ ...passing, since: T0 - 1000 }]))).toEqual(next);
  expect(steadyChecks(next, checksShown([FAILING]))).toEqual(next);
});

test('results without words and times are read back with an empty message and without a time', () => {
  const bare = rolloutWith([{ name: 'error-rate', state: 'Unknown' }]);
  expect(resultsIn(bare, 'u')).toEqual([
    { name: 'error-rate', state: 'unknown', message: '', since: Number.NaN, at: Number.NaN },
  ]);
  const { status: _status, ...unknown } = bare;
  expect(resultsIn(unknown, 'u')).toBeUndefined();
});
