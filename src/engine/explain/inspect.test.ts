/** Tests what commands ask before they read a plan, and what they warn about. */
import { describe, expect, test } from 'vitest';
import { failed, succeeded, working } from '../../../test/support/builders/observations.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { MaintenanceWindow } from '../../util/maintenance-windows.ts';
import { answered, NEVER } from '../model/asked.ts';
import { NO_CONTROLS, type OpenWindow } from '../model/controls.ts';
import type { TargetFacts } from '../model/facts.ts';
import type { RecordedState, Rollout } from '../model/rollout.ts';
import type { OutsideFacts } from '../model/snapshot.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { hasUnknownFailure, openQuestions, warningsOf } from './inspect.ts';

describe('the drains that the leader may carry out now', () => {
  const node = {
    name: 'node-1',
    unschedulable: true,
    cordonOwner: undefined,
    taintOwner: undefined,
  };
  const draining = (since = later(0), waitsFor: 'drain' | 'uncordon' = 'drain') =>
    ({ ...working('Draining', later(0), since), waitsFor }) as const;
  const DRAINED: Partial<TargetFacts> = {
    observation: draining(),
    drainDelegation: answered(true),
    node,
  };

  function drains(
    facts: Partial<TargetFacts>,
    policy: Partial<RolloutPolicy> = {},
    rollout: Partial<Rollout> = {},
    now = T0 + MINUTE,
    state: RecordedState = 'intended',
  ) {
    const stage = buildStage('worker', [buildTarget('w1', state)]);
    const snapshot = buildSnapshot(buildRollout([stage], rollout), { w1: facts });
    return openQuestions(snapshot, buildPolicy(policy), now).drains;
  }

  test('a cordoned node whose work waits for the drain is drained since its report', () => {
    expect(drains(DRAINED)).toEqual([{ node: 'node-1', since: T0 }]);
  });

  test('a drain never seems to have exceeded its deadline, and began at the latest now', () => {
    const now = T0 + 10 * HOUR;
    expect(drains(DRAINED, {}, {}, now)).toEqual([{ node: 'node-1', since: now - HOUR + 1000 }]);
    const unreadable = { ...DRAINED, observation: draining('yesterday') };
    expect(drains(unreadable, {}, {}, now)).toEqual([{ node: 'node-1', since: now }]);
  });

  test.each<[string, Partial<TargetFacts>]>([
    ['works already', { ...DRAINED, observation: working('Restart') }],
    [
      'waits for the end of its cordon',
      { ...DRAINED, observation: draining(later(0), 'uncordon') },
    ],
    ['has succeeded', { ...DRAINED, observation: succeeded() }],
    ['drains itself', { ...DRAINED, drainDelegation: answered(false) }],
    ['is of a process that cannot ask who drains it', { ...DRAINED, drainDelegation: NEVER }],
    ['is not cordoned', { ...DRAINED, node: { ...node, unschedulable: false } }],
    ['has no Node', { ...DRAINED, node: undefined }],
  ])('the leader does not drain a node that %s', (_title, facts) => {
    expect(drains(facts)).toEqual([]);
  });

  test('the leader drains nothing if the policy forbids drains, after the end, and before the start', () => {
    expect(drains(DRAINED, { drain: { ...buildPolicy().drain, enabled: false } })).toEqual([]);
    expect(drains(DRAINED, {}, { phase: 'failed' })).toEqual([]);
    expect(drains(DRAINED, {}, {}, T0, 'pending')).toEqual([]);
  });
});

describe('whether the cause of a failure is unknown', () => {
  const late = {
    code: 'DeadlineExceeded',
    message: 'w1 took too long',
    about: ['w1'],
  } as const;

  const SAID = { w1: { observation: failed('the disk is full') } };

  test.each<
    [string, boolean, readonly RecordedState[], Partial<Rollout>?, Record<string, object>?]
  >([
    ['if nobody says it', true, ['failed']],
    ['if the node says it only in words', true, ['failed'], {}, SAID],
    ['not if the record has its code', false, ['failed'], { reason: late }],
    ['if it is that of one target of two', true, ['failed', 'failed'], { reason: late }],
    ['not if no target has failed', false, ['done']],
  ])('%s', (_title, expected, states, more, facts) => {
    const targets = states.map((state, index) => buildTarget(`w${index + 1}`, state));
    const rollout = buildRollout([buildStage('worker', targets)], { phase: 'failed', ...more });
    expect(hasUnknownFailure(buildSnapshot(rollout, facts))).toBe(expected);
  });
});

describe('what may surprise people although it does not stop the plan', () => {
  const NOW = T0 + MINUTE;
  const until = later(HOUR);
  const NIGHT: MaintenanceWindow = { days: [], startMinute: 0, lengthMs: HOUR, timeZone: 'UTC' };
  const DAY: MaintenanceWindow = { ...NIGHT, lengthMs: 20 * HOUR };
  const BLACKOUT = { from: NOW, to: NOW + MINUTE };

  function warnings(
    {
      openWindow,
      locks,
      known = [],
    }: {
      openWindow?: OpenWindow;
      locks?: OutsideFacts['locks'];
      known?: readonly string[];
    },
    policy: Partial<RolloutPolicy> = {},
  ) {
    const controls = { ...NO_CONTROLS, openWindow };
    const snapshot = withParts(buildSnapshot(buildRollout([buildStage('worker', ['w1'])])), {
      plan: { controls },
      outside: { locks },
    });
    return warningsOf(snapshot, buildPolicy({ name: 'careful', ...policy }), NOW, known);
  }

  test('nothing surprises in a plan without any of it', () => {
    expect(warnings({})).toEqual([]);
    expect(warnings({ locks: [] })).toEqual([]);
  });

  test.each<[string, Partial<RolloutPolicy>, string]>([
    ['no window is closed', {}, 'until then, no node waits for a maintenance window'],
    [
      'the window of the policy is open',
      { windows: [DAY] },
      'until then, no node waits for a maintenance window',
    ],
    [
      'the window of the policy is closed',
      { windows: [NIGHT] },
      'nodes start outside of the windows of the policy',
    ],
    [
      'the window of the plan is closed',
      { planWindows: [NIGHT] },
      'nodes start outside of the windows of the plan',
    ],
    [
      'a blackout begins now',
      { blackouts: [{ from: 0, to: 1 }, BLACKOUT] },
      'nodes start although UpgradePolicy careful has a blackout now',
    ],
    [
      'a blackout ends now',
      { blackouts: [{ from: T0, to: NOW }] },
      'until then, no node waits for a maintenance window',
    ],
    [
      'a blackout begins later',
      { blackouts: [{ from: NOW + 1, to: NOW + 2 }] },
      'until then, no node waits for a maintenance window',
    ],
  ])('an opened window says what it changes while %s', (_title, policy, effect) => {
    const openWindow = { until, by: 'ada', reason: 'a fix', blackouts: true } as const;
    expect(warnings({ openWindow }, policy)).toEqual([
      `ada opened the maintenance window until ${until} (a fix): ${effect}`,
    ]);
  });

  test('each tool whose lock was not found is named, unless a known warning says so', () => {
    const lock = { tool: 'kured', others: [], isOurs: false } as const;
    const locks = [
      lock,
      { ...lock, notFound: ['Kured was not found'] },
      { ...lock, notFound: ['its lock was not found'] },
    ] as unknown as OutsideFacts['locks'];
    expect(warnings({ locks })).toEqual(['Kured was not found', 'its lock was not found']);
    expect(warnings({ locks, known: ['other', 'careful: Kured was not found'] })).toEqual([
      'its lock was not found',
    ]);
  });
});
