/** Tests which waits are known to come before a plan ends, so that no output tells the time that is left. */
import { expect, test } from 'vitest';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { MaintenanceWindow } from '../../util/maintenance-windows.ts';
import { assess } from '../assess/assess.ts';
import { NO_CONTROLS } from '../model/controls.ts';
import type { RecordedState, RolloutPhase } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { etaOf } from './progress.ts';
import { roundsOf, stopsAhead, wavesAhead } from './stops-ahead.ts';

const PACE = { kind: 'measured', mostMs: 10 * MINUTE, usualMs: MINUTE, fastMs: MINUTE } as const;
const NOW = T0 + MINUTE;
/** A window that is open every day from the beginning of the tests for so many minutes. */
const openFor = (minutes: number): MaintenanceWindow => ({
  days: [],
  startMinute: 8 * 60,
  lengthMs: minutes * MINUTE,
  timeZone: 'UTC',
});
const opened = (until: string, blackouts?: true) => ({
  plan: { controls: { ...NO_CONTROLS, openWindow: { until, blackouts } } },
});
const BLACKOUT = { from: T0 + 15 * MINUTE, to: T0 + HOUR };

/** A plan whose first worker is done, whose second is in progress, and whose last is pending, unless it says otherwise. */
function running(last: 'pending' | 'done' = 'pending', more: Partial<Snapshot> = {}): Snapshot {
  const stage = buildStage('worker', [
    buildTarget('w1', 'done', { since: later(0) }),
    buildTarget('w2', 'intended', { since: later(0) }),
    buildTarget('w3', last, { since: later(0) }),
  ]);
  return { ...buildSnapshot(buildRollout([stage])), pace: PACE, ...more };
}

test.each<[string, Snapshot, Partial<RolloutPolicy>, readonly string[]]>([
  ['nothing stops it', running(), {}, []],
  [
    'somebody paused it',
    withParts(running(), { plan: { controls: { ...NO_CONTROLS, paused: true } } }),
    {},
    ['Paused'],
  ],
  ['its policy pauses it', running(), { paused: true }, ['Paused']],
  ['a pause starts nothing that is left', running('done'), { paused: true }, []],
  ['something else pauses it', running(), { heldBy: 'the fleet' }, ['Paused']],
  [
    'several things stop it',
    running(),
    { paused: true, blackouts: [BLACKOUT] },
    ['Paused', 'Blackout'],
  ],
  ['a wave settles', running(), { waves: [{ count: 2, settleMs: 2 * HOUR }, {}] }, ['WaveSettles']],
  [
    'a wave needs an approval',
    running(),
    { waves: [{ count: 2 }, { needsApproval: true }] },
    ['WaveNeedsApproval'],
  ],
  ['a wave that has started needs none', running('done'), { waves: [{ needsApproval: true }] }, []],
  ['a blackout begins too soon', running(), { blackouts: [BLACKOUT] }, ['Blackout']],
  [
    'a blackout begins too soon, but it is not known how long nodes take',
    running('pending', { pace: { kind: 'unknown' } }),
    { blackouts: [BLACKOUT] },
    [],
  ],
  [
    'a blackout begins before the last node starts',
    running(),
    { blackouts: [{ ...BLACKOUT, from: NOW + 20 * MINUTE - 1 }] },
    ['Blackout'],
  ],
  [
    'a blackout begins as the last node starts',
    running(),
    { blackouts: [{ ...BLACKOUT, from: NOW + 20 * MINUTE }] },
    [],
  ],
  ['a blackout ends now', running(), { blackouts: [{ from: T0, to: NOW }] }, []],
  ['the window closes too soon', running(), { windows: [openFor(20)] }, ['WindowClosed']],
  ['the window closes as the last node starts', running(), { windows: [openFor(21)] }, []],
  [
    'the window of the plan closes too soon',
    running(),
    { planWindows: [openFor(20)] },
    ['WindowClosed'],
  ],
  [
    'a window closes too soon after a blackout',
    running(),
    { windows: [openFor(20)], blackouts: [{ from: 0, to: NOW }] },
    ['WindowClosed'],
  ],
  [
    'the window closes too soon, and a blackout begins as the last node starts',
    running(),
    { windows: [openFor(20)], blackouts: [{ ...BLACKOUT, from: NOW + 20 * MINUTE }] },
    ['Blackout'],
  ],
  [
    'the window closes too soon, and a blackout begins after the last node',
    running(),
    { windows: [openFor(20)], blackouts: [{ ...BLACKOUT, from: NOW + 20 * MINUTE + 1 }] },
    ['WindowClosed'],
  ],
  [
    'somebody opened the window for long enough',
    withParts(running(), opened(later(21 * MINUTE), true)),
    { windows: [openFor(20)], blackouts: [BLACKOUT] },
    [],
  ],
  [
    'somebody opened the window, but not for long enough',
    withParts(running(), opened(later(20 * MINUTE))),
    { windows: [openFor(20)] },
    ['WindowClosed'],
  ],
])('what stops a plan before its end: %s', (_name, snapshot, more, expected) => {
  const assessment = assess(snapshot, buildPolicy(more), NOW);
  expect(stopsAhead(assessment)).toEqual(expected);
  const isTold = snapshot.pace.kind === 'measured' && expected.length === 0;
  expect(etaOf(assessment, []) !== undefined).toBe(isTold);
});

test.each<[RolloutPhase, readonly string[]]>([
  ['new', ['Paused']],
  ['running', ['Paused']],
  ['failed', []],
])('nothing stops a plan that has ended: a paused plan with the phase %s', (phase, expected) => {
  const rollout = buildRollout([buildStage('worker', ['w1'])], { phase });
  const assessment = assess(buildSnapshot(rollout), buildPolicy({ paused: true }), NOW);
  expect(stopsAhead(assessment)).toEqual(expected);
});

test('a hold of a pending target stops the plan, if it is one of the first 500', () => {
  const names = Array.from({ length: 501 }, (_, index) => `w${index}`);
  const stages = [buildStage('controller', ['c1']), buildStage('worker', names)];
  const stops = (name: string) => {
    const snapshot = buildSnapshot(buildRollout(stages), { [name]: { hold: { by: 'ada' } } });
    return stopsAhead(assess(snapshot, buildPolicy(), NOW));
  };
  expect(stops('w499')).toEqual(['Held']);
  expect(stops('w500')).toEqual([]);
});

test('a plan with a stage that has ended still stops if another stage has pending targets', () => {
  const done = buildStage('controller', [buildTarget('c1', 'done')]);
  const snapshot = buildSnapshot(buildRollout([done, buildStage('worker', ['w1'])]));
  expect(stopsAhead(assess(snapshot, buildPolicy({ paused: true }), NOW))).toEqual(['Paused']);
});

test('a wave of which one target is still pending has not settled', () => {
  const labels = { canary: 'true' };
  const stage = buildStage('worker', [buildTarget('w1', 'done'), 'w2', 'w3']);
  const snapshot = buildSnapshot(buildRollout([stage]), { w1: { labels }, w2: { labels } });
  const waves = [{ selector: { matchLabels: labels }, settleMs: MINUTE }, {}];
  expect(wavesAhead(assess(snapshot, buildPolicy({ waves }), T0 + HOUR), stage)).toEqual([
    { wave: 2, settles: true, needsApproval: false },
  ]);
});

/** Returns the waves ahead of a stage whose single members are in these states since T0. */
function ahead(states: readonly RecordedState[], waves: RolloutPolicy['waves'], now = NOW) {
  const targets = states.map((state, index) => buildTarget(`w${index}`, state));
  const labels = (index: number) => ({ wave: String(index) });
  const rules = waves?.map((rule, index) => ({
    ...rule,
    selector: { matchLabels: labels(index) },
  }));
  const stage = buildStage('worker', targets);
  const facts = targets.map(({ name }, index) => [name, { labels: labels(index) }] as const);
  const snapshot = buildSnapshot(buildRollout([stage]), Object.fromEntries(facts));
  const policy = buildPolicy(rules === undefined ? {} : { waves: rules });
  return wavesAhead(assess(snapshot, policy, now), stage);
}

const SETTLES = { settleMs: 10 * MINUTE };
const SECOND_SETTLES = [{ wave: 2, settles: true, needsApproval: false }];

test.each<[string, readonly RecordedState[], RolloutPolicy['waves'], number, readonly object[]]>([
  ['the policy has no waves', ['pending', 'pending'], undefined, NOW, []],
  ['no wave settles', ['done', 'pending'], [{}, {}], NOW, []],
  ['the first wave is pending', ['pending', 'pending'], [SETTLES, {}], T0 + HOUR, SECOND_SETTLES],
  ['the first wave is at work', ['intended', 'pending'], [SETTLES, {}], T0 + HOUR, SECOND_SETTLES],
  [
    'the first wave settles',
    ['done', 'pending'],
    [SETTLES, {}],
    T0 + 10 * MINUTE - 1,
    SECOND_SETTLES,
  ],
  ['the first wave has settled', ['done', 'pending'], [SETTLES, {}], T0 + 10 * MINUTE, []],
  ['the second wave has started', ['done', 'done'], [SETTLES, { needsApproval: true }], NOW, []],
  ['only the last wave settles', ['pending', 'pending'], [{}, SETTLES], NOW, []],
  [
    'the last waves need approvals',
    ['done', 'pending', 'pending'],
    [SETTLES, { needsApproval: true }, { needsApproval: true }],
    NOW,
    [
      { wave: 2, settles: true, needsApproval: true },
      { wave: 3, settles: true, needsApproval: true },
    ],
  ],
  [
    'the first wave needs an approval',
    ['pending', 'pending'],
    [{ needsApproval: true }, {}],
    NOW,
    [{ wave: 1, settles: false, needsApproval: true }],
  ],
])('the waves that cannot start yet: %s', (_title, states, waves, now, expected) => {
  expect(ahead(states, waves, now)).toEqual(expected);
});

test.each<[readonly RecordedState[], number, number]>([
  [['pending', 'pending', 'intended', 'done', 'failed'], 2, 2],
  [['pending', 'intended'], 2, 1],
  [['pending', 'pending'], 0, 2],
  [['done'], 2, 0],
])('the targets %j fill the %i slots of their stage %i times', (states, maxInFlight, rounds) => {
  const targets = states.map((state, index) => buildTarget(`w${index}`, state));
  expect(roundsOf(buildStage('worker', targets, { maxInFlight }))).toBe(rounds);
});
