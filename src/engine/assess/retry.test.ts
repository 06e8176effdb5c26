/** Tests which failed targets are tried again, from when on, and which reports belong to the earlier attempt. */

import { expect, test } from 'vitest';
import { decide } from '../../../test/support/builders/decisions.ts';
import {
  failed,
  NONE,
  sent,
  succeeded,
  working,
} from '../../../test/support/builders/observations.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot, buildTargets } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { type Controls, NO_CONTROLS } from '../model/controls.ts';
import type { Observation } from '../model/facts.ts';
import { because } from '../model/reasons.ts';
import { isUpgradedByLaterStage, type RecordedState, type Stage } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { isSupersededByRetry, momentOf, withRetries } from './retry.ts';

const w1 = buildTarget('w1', 'failed');
const w2 = buildTarget('w2', 'failed');
const NOW = T0 + HOUR;
const ORDERED = T0 + MINUTE;
const OLD_FAILURE = failed('404', later(0));

function snapshotWith(
  stages: readonly Stage[],
  observations: Record<string, Observation>,
  controls: Partial<Controls> = { retries: new Map([['w1', ORDERED]]) },
): Snapshot {
  const reason = because('TargetFailed', 'w1 failed');
  const facts = Object.fromEntries(
    Object.entries(observations).map(([name, observation]) => [name, { observation }]),
  );
  const rollout = buildRollout(stages, { phase: 'failed', reason });
  return withParts(buildSnapshot(rollout, facts), {
    plan: { controls: { ...NO_CONTROLS, ...controls } },
  });
}

test.each([
  ['pending', 0, true],
  ['intended', 2 * MINUTE, true],
  // Somebody asked for the retry while the attempt was under way.
  ['intended', 0, false],
] as const)(
  'a success without the wanted version does not count for a retried %s target since %d ms: %s',
  (state, since, isSuperseded) => {
    const target = { ...buildTarget('w1', state), since: later(since) };
    const [gap, reached] = [{ wanted: 'v2', reported: 'v1', work: 'Job a' }, undefined].map(
      (versionGap) => {
        const snapshot = snapshotWith([buildStage('worker', [target])], {});
        const facts = { observation: succeeded(later(0)), versionGap };
        const targets = buildTargets({ [target.key]: facts });
        return isSupersededByRetry({ ...snapshot, targets }, target);
      },
    );
    expect([gap, reached]).toEqual([isSuperseded, false]);
  },
);

const statesOf = ({ stages }: { stages: readonly Stage[] }): string[] =>
  stages.flatMap(({ targets }) => targets.map(({ name, state }) => `${name} ${state}`));

test('only the targets that somebody named are tried again, and the reason of the others stays', () => {
  const snapshot = snapshotWith([buildStage('worker', [w1, w2])], {
    w1: OLD_FAILURE,
    w2: OLD_FAILURE,
  });
  const rollout = withRetries(snapshot, NOW);
  expect(statesOf(rollout)).toEqual(['w1 pending', 'w2 failed']);
  expect(rollout).toMatchObject({ phase: 'running', reason: { message: 'w1 failed' } });
});

test('a reason that names the failures of the end does not outlive it', () => {
  const ended = snapshotWith([buildStage('worker', [w1, w2])], {
    w1: OLD_FAILURE,
    w2: OLD_FAILURE,
  });
  const reason = because('DoneWithFailures', '6 of 8 targets done; failed: w1, w2');
  expect(withRetries({ ...ended, rollout: { ...ended.rollout, reason } }, NOW)).toMatchObject({
    phase: 'running',
    reason: undefined,
  });
});

test('one of several failures is retried after a drain that stopped the rollout: it runs again within its budget', () => {
  const ended = snapshotWith([buildStage('worker', [w1, w2, 'w3'])], {
    w1: OLD_FAILURE,
    w2: OLD_FAILURE,
  });
  const reason = because('DrainTooLong', 'w1 was not drained within 1 h: 1 pod is left on node w1');
  const { record } = decide(
    { ...ended, rollout: { ...ended.rollout, reason } },
    buildPolicy({ maxFailures: 3 }),
    NOW,
  );
  expect(record?.phase).toBe('running');
});

test('a rollout without a failed target any more has no reason any more', () => {
  const rollout = withRetries(snapshotWith([buildStage('worker', [w1])], { w1: OLD_FAILURE }), NOW);
  expect(statesOf(rollout)).toEqual(['w1 pending']);
  expect(rollout.reason).toBeUndefined();
});

test.each<[string, Partial<Controls>, Observation]>([
  ['nobody named the target', { retries: new Map() }, OLD_FAILURE],
  ['the rollout is aborted', { retries: new Map([['w1', ORDERED]]), abort: 'wrong' }, OLD_FAILURE],
  ['the target still has its signal', { retries: new Map([['w1', ORDERED]]) }, sent(later(0))],
  ['the target still works', { retries: new Map([['w1', ORDERED]]) }, working('Restart', later(0))],
  ['the target failed after the order', { retries: new Map([['w1', T0 - 1]]) }, OLD_FAILURE],
])('a failed target is not tried again where %s', (_why, controls, observation) => {
  const snapshot = snapshotWith([buildStage('worker', [w1])], { w1: observation }, controls);
  expect(withRetries(snapshot, NOW)).toBe(snapshot.rollout);
});

test('a target that failed in the very second of the order is tried again', () => {
  const controls = { retries: new Map([['w1', T0]]) };
  const snapshot = snapshotWith([buildStage('worker', [w1])], { w1: OLD_FAILURE }, controls);
  expect(statesOf(withRetries(snapshot, NOW))).toEqual(['w1 pending']);
});

const command = (index: number, state: RecordedState, more: Partial<Stage> = {}): Stage =>
  buildStage('worker', [buildTarget('w1', state), buildTarget('w2')], {
    command: index,
    id: `${index}`,
    ...more,
  });

test.each<[string, readonly Stage[], boolean]>([
  ['a later command upgraded it', [command(0, 'failed'), command(1, 'done')], true],
  ['a later command has not upgraded it', [command(0, 'failed'), command(1, 'pending')], false],
  [
    'an earlier command brought it',
    [command(2, 'pending'), command(1, 'done'), command(0, 'failed')],
    false,
  ],
  [
    'a later command upgraded another one only',
    [command(0, 'failed'), buildStage('worker', [buildTarget('w2', 'done')], { id: '1' })],
    false,
  ],
  [
    'a later command upgraded the controller of its name',
    [command(0, 'failed'), buildStage('controller', [buildTarget('w1', 'done')], { id: '1' })],
    false,
  ],
  [
    'a later command does not change its version',
    [command(0, 'failed'), command(1, 'done', { keepsVersion: true })],
    false,
  ],
  [
    'its own command does not change its version',
    [command(0, 'failed', { keepsVersion: true }), command(1, 'done')],
    false,
  ],
])('a retry would downgrade a target: %s', (_name, stages, expected) => {
  const own = stages.find(({ id }) => id === '0');
  if (own === undefined) throw new Error('no stage 0');
  expect(isUpgradedByLaterStage(buildRollout(stages), own, buildTarget('w1'))).toBe(expected);
});

test('work of a later command ends first; work of an earlier one does not matter', () => {
  const before = command(7, 'done');
  const own = command(0, 'failed');
  const after = command(1, 'pending');
  const moving = buildTarget('w2', 'intended');
  const with2 = (stage: Stage): Stage => ({
    ...stage,
    targets: [...stage.targets.slice(0, 1), moving],
  });
  const retried = (stages: readonly Stage[]): string => {
    const snapshot = snapshotWith(stages, { w1: OLD_FAILURE });
    return withRetries(snapshot, NOW) === snapshot.rollout ? 'no' : 'yes';
  };
  expect([retried([before, own, after]), retried([with2(before), own, after])]).toEqual([
    'yes',
    'yes',
  ]);
  expect(retried([before, own, with2(after)])).toBe('no');
});

test.each<[string, RecordedState, Observation, boolean]>([
  ['an old failure', 'intended', OLD_FAILURE, true],
  ['an old failure of the second of the order', 'intended', failed('404', later(MINUTE)), true],
  ['a new failure', 'intended', failed('404', later(2 * MINUTE)), false],
  [
    'old work of one that waits for its retry: only an old cache shows it',
    'pending',
    working('x', later(0)),
    true,
  ],
  ['an old success of one that waits for its retry', 'pending', succeeded(later(0)), false],
  ['old work of one that was tried again', 'intended', working('x', later(0)), false],
  ['no report', 'pending', NONE, false],
])(
  'a report is that of the attempt before the retry: %s',
  (_name, state, observation, expected) => {
    const target = buildTarget('w1', state);
    const snapshot = snapshotWith([buildStage('worker', [target])], { w1: observation });
    const [own] = snapshot.rollout.stages[0]?.targets ?? [];
    expect(isSupersededByRetry(snapshot, own ?? target)).toBe(expected);
    expect(isSupersededByRetry({ ...snapshot, targets: buildTargets({}) }, own ?? target)).toBe(
      false,
    );
    expect(
      isSupersededByRetry(withParts(snapshot, { plan: { controls: NO_CONTROLS } }), own ?? target),
    ).toBe(false);
  },
);

test('a target whose object is gone reports nothing of an attempt', () => {
  const snapshot = snapshotWith([buildStage('worker', [w1])], {});
  const [own = w1] = snapshot.rollout.stages[0]?.targets ?? [];
  const targets = buildTargets({ [own.key]: { exists: false, observation: OLD_FAILURE } });
  expect(isSupersededByRetry({ ...snapshot, targets }, own)).toBe(false);
});

test('the next attempt of a target is named after its order, also by a clock that is behind', () => {
  const controls = { ...NO_CONTROLS, retries: new Map([['w1', ORDERED]]) };
  expect(momentOf({ plan: { controls } }, w1, T0)).toBe(later(MINUTE + 1000));
  expect(momentOf({ plan: { controls } }, w1, NOW)).toBe(later(HOUR));
  expect(momentOf({ plan: { controls } }, w2, T0)).toBe(later(0));
});
