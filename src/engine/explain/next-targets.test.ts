/** Tests which targets are named as the next ones, and how much of a plan is done. */
import { describe, expect, test } from 'vitest';
import { sent } from '../../../test/support/builders/observations.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { assess } from '../assess/assess.ts';
import { NO_CONTROLS } from '../model/controls.ts';
import type { Wait } from '../model/decision.ts';
import type { TargetFacts } from '../model/facts.ts';
import { because, type ReasonCode } from '../model/reasons.ts';
import type { RecordedState, Rollout, Stage, Target } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { nextTargets } from './next-targets.ts';
import { countsOf, etaOf, percentOf } from './progress.ts';

interface Given {
  readonly facts?: Readonly<Record<string, Partial<TargetFacts>>>;
  readonly policy?: Partial<RolloutPolicy>;
  readonly waits?: readonly Wait[];
  readonly upcoming?: Partial<Rollout>;
  readonly abort?: string;
}

function next(
  stages: readonly Stage[],
  { facts, policy, waits = [], upcoming, abort }: Given = {},
) {
  const controls = abort === undefined ? NO_CONTROLS : { ...NO_CONTROLS, abort };
  const snapshot = withParts(buildSnapshot(buildRollout(stages), facts), { plan: { controls } });
  const assessment = assess(snapshot, buildPolicy(policy), T0);
  return nextTargets(assessment, waits, { ...snapshot.rollout, ...upcoming });
}

/** Returns a stage with two slots. */
const workers = (targets: readonly (string | Target)[], more: Partial<Stage> = {}) =>
  buildStage('worker', targets, { maxInFlight: 2, ...more });

function wait(
  target: string,
  code: ReasonCode = 'HealthCheckFailing',
  more: Partial<Wait> = {},
): Wait {
  return {
    target,
    gate: 'gate',
    reason: { code, message: code },
    since: later(0),
    ...more,
  };
}

const THREE = [workers(['w1', 'w2', 'w3'])];

describe('the targets that start next', () => {
  test('as many are named as there are slots', () => {
    expect(next(THREE)).toEqual(['w1', 'w2']);
    expect(next([buildStage('controller', ['c1', 'c2'], { maxInFlight: 5 })])).toEqual(['c1']);
  });

  test.each<[string, Given]>([
    ['is about to end', { upcoming: { phase: 'failed' } }],
    ['was aborted', { abort: 'no' }],
    ['has become invalid', { upcoming: { problems: [because('InvalidPlan', 'no')] } }],
  ])('no target of a plan that %s starts', (_title, given) => {
    expect(next(THREE, given)).toEqual([]);
  });

  test('those of the first stage with pending targets come first', () => {
    const done = buildStage('controller', [buildTarget('c1', 'done')]);
    expect(next([done, ...THREE])).toEqual(['w1', 'w2']);
    expect(next([done])).toEqual([]);
    expect(next([buildStage('controller', ['c1']), ...THREE])).toEqual(['c1']);
  });

  test.each<[string, Partial<TargetFacts>]>([
    ['has its signal already', { observation: sent() }],
    ['is held', { hold: { by: 'ada' } }],
    ['was deleted', { exists: false }],
  ])('a target that %s is not next', (_title, w1) => {
    expect(next(THREE, { facts: { w1 } })).toEqual(['w2', 'w3']);
  });

  test('no later stage follows if all targets of a stage are held', () => {
    const stages = [workers(['w1']), workers(['w2'], { command: 1 })];
    expect(next(stages, { facts: { w1: { hold: { by: 'ada' } } } })).toEqual([]);
  });

  test.each<[string, readonly Wait[], readonly string[]]>([
    ['one that a gate blocks is not next', [wait('w1')], ['w2', 'w3']],
    [
      'a wait of the whole stage blocks no single target',
      [wait('w1', 'Paused', { ofStage: true })],
      ['w1', 'w2'],
    ],
    ['what could not be asked blocks none', [wait('w1', 'ControlPlaneUnknown')], ['w1', 'w2']],
    [
      'if all are blocked, the first ones are next',
      ['w1', 'w2', 'w3'].map((name) => wait(name)),
      ['w1', 'w2'],
    ],
    [
      'if all are blocked, those that wait for earlier ones are not next',
      [wait('w1'), wait('w2', 'EarlierNodes'), wait('w3')],
      ['w1', 'w3'],
    ],
    [
      'a wait for earlier ones that could not be asked does not count',
      [wait('w1'), wait('w2', 'EarlierNodes', { ofStage: true }), wait('w3')],
      ['w2'],
    ],
  ])('%s', (_title, waits, expected) => {
    expect(next(THREE, { waits })).toEqual(expected);
  });

  test('only targets of the first group that may start are next', () => {
    const facts = { w2: { labels: { edge: 'true' } } };
    const policy = { order: ['edge=true'] };
    expect(next(THREE, { facts, policy })).toEqual(['w2']);
    expect(next(THREE, { facts: { w2: { ...facts.w2, hold: {} } }, policy })).toEqual(['w1', 'w3']);
  });

  test('those of a wave that must settle come only once no earlier wave is at work', () => {
    const labels = { canary: 'true' };
    const selector = { matchLabels: labels };
    const policy = { waves: [{ selector, settleMs: HOUR }, {}] };
    const stage = (first: RecordedState, second: RecordedState) =>
      workers([buildTarget('w1', first), buildTarget('w2', second), 'w3', 'w4']);
    const facts = { w1: { labels }, w2: { labels } };
    expect(next([stage('intended', 'pending')], { facts, policy })).toEqual(['w2']);
    expect(next([stage('intended', 'done')], { facts, policy })).toEqual([]);
    expect(next([stage('done', 'done')], { facts, policy })).toEqual(['w3', 'w4']);
    const soon = { waves: [{ selector }, {}] };
    expect(next([stage('intended', 'done')], { facts, policy: soon })).toEqual(['w3', 'w4']);
  });
});

describe('how much of a plan is done', () => {
  const stage = (...states: readonly RecordedState[]) =>
    workers(states.map((state, index) => buildTarget(`w${index}`, state)));

  test('each target counts in its state', () => {
    const stages = [
      stage('done', 'done', 'failed', 'pending'),
      stage('intended', 'pending', 'pending', 'missing', 'unsupported', 'skipped'),
    ];
    expect(countsOf({ stages })).toEqual({
      total: 10,
      done: 2,
      failed: 1,
      inProgress: 1,
      pending: 3,
      skipped: 3,
    });
  });

  test('the percentage is rounded down, and a plan without targets has done nothing', () => {
    expect(percentOf({ total: 3, done: 2 })).toBe(66);
    expect(percentOf({ total: 3, done: 3 })).toBe(100);
    expect(percentOf({ total: 0, done: 0 })).toBe(0);
  });

  describe('the expected end', () => {
    const pace = {
      kind: 'measured',
      usualMs: 10 * MINUTE,
      fastMs: 5 * MINUTE,
      mostMs: 20 * MINUTE,
    } as const;

    function eta(
      more: Partial<Rollout> = {},
      waits: readonly Wait[] = [],
      states: readonly RecordedState[] = ['done', 'intended', 'pending', 'pending'],
      given: Partial<Snapshot> = {},
    ) {
      const snapshot = { ...buildSnapshot(buildRollout([stage(...states)], more)), pace, ...given };
      return etaOf(assess(snapshot, buildPolicy(), T0), waits);
    }

    test('counts the rounds of the slots that are left', () => {
      const expected = {
        at: later(20 * MINUTE),
        earliest: later(10 * MINUTE),
        latest: later(40 * MINUTE),
      };
      expect(eta()).toEqual(expected);
      expect(eta({}, [wait('w1', 'NoFreeSlot', { gate: 'slots' })])).toEqual(expected);
    });

    test('is unknown if the plan does not run, stops, waits, or has no measured pace', () => {
      expect(eta({ phase: 'new' })).toBeUndefined();
      expect(eta({ phase: 'failed' })).toBeUndefined();
      expect(eta({ problems: [because('InvalidPlan', 'no')] })).toBeUndefined();
      expect(eta({}, [wait('w1')])).toBeUndefined();
      expect(eta({}, [], ['pending'], { pace: { kind: 'unknown' } })).toBeUndefined();
      expect(eta({}, [], ['done', 'done'])).toBeUndefined();
    });
  });
});
