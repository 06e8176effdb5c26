/**
 * Tests the results of hooks in a NodeRollout: which results are written, how long a failure stays, and what commands
 * read back.
 */
import { expect, test } from 'vitest';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { MOST, type NodeRollout } from '../../api/refit/node-rollout.ts';
import type { HookResult } from '../../hooks/rules.ts';
import { hookResultsIn, hooksShown, type ShownHook, withEarlierFailures } from './shown-hooks.ts';

function result(
  target: string | undefined,
  state: HookResult['state'],
  more: Partial<HookResult> = {},
) {
  const said = { message: `${target} is ${state}`, since: T0, ...more };
  return { id: `refit-backup-${target}`, hook: 'backup', target, state, ...said };
}

function rolloutWith(hooks: ShownHook[] | undefined): NodeRollout {
  const head = { apiVersion: 'upgrade.refit.dev/v1alpha1', kind: 'NodeRollout' };
  const plan = { apiVersion: 'v1', kind: 'Plan', name: 'a', uid: 'u' };
  const status = hooks === undefined ? {} : { hooks };
  return { ...head, metadata: { name: 'a' }, spec: { plan }, status };
}

const FAILED = result('w1', 'failed');
const RUNS = result('w2', 'running');
const OF_PLAN = { ...result(undefined, 'failed'), id: 'refit-freeze-1' };

test('running and failed hooks are shown, and read back for the same plan only', () => {
  const shown = hooksShown([result('w0', 'succeeded'), RUNS, FAILED]);
  expect(shown).toMatchObject([
    { hook: 'backup', target: 'w1', state: 'Failed', message: 'w1 is failed', since: later(0) },
    { hook: 'backup', target: 'w2', state: 'Running', message: 'w2 is running' },
  ]);
  expect(hookResultsIn(rolloutWith(shown), 'u')).toEqual([FAILED, RUNS]);
  expect(hookResultsIn(rolloutWith(shown), 'another')).toBeUndefined();
  expect(hookResultsIn(rolloutWith(undefined), 'u')).toBeUndefined();
  expect(hooksShown([result('w0', 'succeeded')])).toBeUndefined();
});

test('a message is shortened, and its control characters do not reach a terminal', () => {
  const message = `\u001B[1m${'x'.repeat(2_000)}`;
  const [shown] = hooksShown([result('w1', 'failed', { message })]) ?? [];
  expect(shown?.message).toHaveLength(1_024);
  expect(shown?.message).toMatch(/^\uFFFD\[1mx+$/);
});

test('with too many hooks the newest failures are shown', () => {
  const many = Array.from({ length: MOST.hooks }, (_, at) =>
    result(`w${at}`, 'failed', { since: T0 + at * MINUTE }),
  );
  const shown = hooksShown([result('r', 'running', { since: T0 + 99 * MINUTE }), ...many, FAILED]);
  expect(shown).toHaveLength(MOST.hooks);
  expect(shown?.[0]).toMatchObject({ target: `w${MOST.hooks - 1}` });
  expect(shown?.every(({ state }) => state === 'Failed')).toBe(true);
});

test.each<[string, readonly HookResult[], readonly HookResult[], string[], string[]]>([
  ['a failed one whose target has failed', [], [FAILED], ['w1'], ['w1 Failed']],
  ['none whose target is tried again', [], [FAILED], [], []],
  ['none that ran', [], [RUNS], ['w2'], []],
  ['the newest state of a run', [result('w1', 'running')], [FAILED], ['w1'], ['w1 Running']],
  ['the failure of a hook of the plan', [], [OF_PLAN], ['refit-freeze-1'], ['undefined Failed']],
  ['none of another attempt of the plan', [], [OF_PLAN], ['refit-freeze-2'], []],
  ['those of before and now', [RUNS], [FAILED], ['w1'], ['w1 Failed', 'w2 Running']],
])(
  'of the runs that an earlier leader has shown stays %s',
  (_what, now, before, ended, expected) => {
    const shown = withEarlierFailures(hooksShown(now), hooksShown(before), () => ended) ?? [];
    expect(shown.map(({ target, state }) => `${target} ${state}`)).toEqual(expected);
  },
);

test('a hook without a time is shown without one', () => {
  const [one] = hooksShown([FAILED]) ?? [];
  const { since: _since, ...rest } = one as ShownHook;
  const results = hookResultsIn(rolloutWith([rest]), 'u');
  expect(hooksShown(results)).toEqual([rest]);
});

test('without results nothing is shown, and nothing is read back', () => {
  expect(hooksShown()).toBeUndefined();
  expect(withEarlierFailures(undefined, undefined, () => [])).toBeUndefined();
  const { status: _status, ...unknown } = rolloutWith([]);
  expect(hookResultsIn(unknown, 'u')).toBeUndefined();
  expect(hookResultsIn(undefined, 'u')).toBeUndefined();
});

test('the targets that have ended are not read if no failure is lost', () => {
  const settled = (): never => {
    throw new Error('the targets were read');
  };
  expect(withEarlierFailures(hooksShown([FAILED]), hooksShown([FAILED, RUNS]), settled)).toEqual(
    hooksShown([FAILED]),
  );
});

test('hooks of the same state are sorted by their times, and then by their names', () => {
  const old = result('w5', 'failed', { since: T0 - MINUTE });
  const untimed = result('w0', 'failed', { since: Number.NaN });
  const shown = hooksShown([untimed, RUNS, old, result('w4', 'failed'), FAILED]) ?? [];
  expect(shown.map(({ target }) => target)).toEqual(['w1', 'w4', 'w5', 'w0', 'w2']);
});

test('a hook without words is read back with an empty message', () => {
  const bare = rolloutWith([{ hook: 'backup', id: 'refit-backup-1', state: 'Running' }]);
  expect(hookResultsIn(bare, 'u')).toEqual([
    {
      hook: 'backup',
      target: undefined,
      id: 'refit-backup-1',
      state: 'running',
      message: '',
      since: Number.NaN,
    },
  ]);
});
