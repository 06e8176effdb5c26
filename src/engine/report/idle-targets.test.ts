/**
 * Proves that a stalled target is reported once, and again only if the text differs in more than its numbers, because
 * the numbers in the message of a scheduler change each time.
 */
import { expect, test } from 'vitest';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, T0 } from '../../../test/support/clock/times.ts';
import { assess } from '../assess/assess.ts';
import type { Observation, TargetFacts } from '../model/facts.ts';
import { because } from '../model/reasons.ts';
import type { RecordedState } from '../model/rollout.ts';
import type { TargetEvent } from './events.ts';
import { type IdleMemory, idleMemory } from './idle-targets.ts';

/**
 * Returns the names of the targets that are reported at this time, and since when each target has been stalled. Times
 * are in milliseconds after T0.
 */
function toldAt(idle: IdleMemory, at: number, stalled: Readonly<Record<string, string>>) {
  const targets = ['w-1', 'w-2'].map((name) => buildTarget(name, 'intended', { since: later(0) }));
  const facts = Object.entries(stalled).map(([name, words]): [string, Partial<TargetFacts>] => [
    name,
    {
      observation: {
        kind: 'working',
        step: 'Starting',
        stalled: words,
        attempt: later(0),
        since: later(0),
      },
    },
  ]);
  const snapshot = buildSnapshot(
    buildRollout([buildStage('worker', targets)]),
    Object.fromEntries(facts),
  );
  const { stalled: told, stalls } = idle.at('plan', assess(snapshot, buildPolicy(), T0 + at));
  return [told.map(({ target }) => target.name), [...stalls.values()].map((since) => since - T0)];
}

test('a target that waits idle is reported once, and again only with another message', () => {
  const idle = idleMemory();
  expect(toldAt(idle, 0, { 'w-1': '0/9 nodes are available: 2 are full' })).toEqual([['w-1'], [0]]);
  expect(toldAt(idle, 10, { 'w-1': '0/9 nodes are available: 3 are full' })).toEqual([[], [0]]);
  const both = {
    'w-1': '0/9 nodes are available: 4 are full',
    'w-2': '0/9 nodes are available: 4 are full',
  };
  expect(toldAt(idle, 20, both)).toEqual([['w-2'], [0, 20]]);
  expect(toldAt(idle, 30, { ...both, 'w-1': 'ErrImagePull' })).toEqual([['w-1'], [30, 20]]);
  expect(toldAt(idle, 40, { 'w-2': both['w-2'] })).toEqual([[], [20]]);
  expect(toldAt(idle, 50, both)).toEqual([['w-1'], [50, 20]]);
});

const RESTING: Observation = { kind: 'succeeded', attempt: later(0), since: later(0) };
const STALLED: Observation = {
  kind: 'working',
  step: 'Starting',
  stalled: 'ErrImagePull',
  attempt: later(0),
  since: later(0),
};
const REFUSED = because('TargetRefused', 'w1: the API server refuses the change');

/** Returns what is reported about the plan whose only target in progress is w1. */
function idleWith(
  facts: Partial<TargetFacts>,
  idle = idleMemory(),
  states: readonly RecordedState[] = ['intended', 'pending'],
) {
  const targets = states.map((state, index) =>
    buildTarget(`w${index + 1}`, state, { since: later(0) }),
  );
  const rollout = buildRollout([buildStage('worker', targets, { restMs: HOUR })]);
  const assessment = assess(buildSnapshot(rollout, { w1: facts }), buildPolicy(), T0 + 1000);
  const { stalled, rests, stalls } = idle.at('plan', assessment);
  const told = ({ type, target, reason }: TargetEvent): string =>
    `${type} ${target.name} ${reason.code}: ${reason.message}`;
  return { stalled: stalled.map(told), rests: rests.map(told), stalls: [...stalls] };
}

const NOTHING = { stalled: [], rests: [], stalls: [] };
const RESTS = 'Normal w1 Resting: w1 keeps its slot for 1 h after its success';

test('a target that rests is reported once, and is no stall', () => {
  const idle = idleMemory();
  const facts = { observation: RESTING, watchedMs: 1000 };
  expect(idleWith(facts, idle)).toEqual({ ...NOTHING, rests: [RESTS] });
  expect(idleWith(facts, idle)).toEqual(NOTHING);
  idle.forget('plan');
  expect(idleWith(facts, idle)).toEqual({ ...NOTHING, rests: [RESTS] });
});

test('a stalled target has a warning with its own words', () => {
  const { stalled, rests, stalls } = idleWith({ observation: STALLED });
  expect(stalled).toEqual(['Warning w1 Stalled: w1 is at Starting: ErrImagePull']);
  expect(rests).toEqual([]);
  expect(stalls).toEqual([['w1 is at Starting: ErrImagePull', T0 + 1000]]);
});

test('a refused write is a stall, but has no second Event', () => {
  const refusal = { reason: REFUSED, recheckMs: 1000 };
  expect(idleWith({ refusal })).toEqual({
    ...NOTHING,
    stalls: [['w1: the API server refuses the change', T0 + 1000]],
  });
});

test('a target that works, and a plan without a target in progress, are not idle', () => {
  const working = { ...STALLED, stalled: undefined };
  expect(idleWith({ observation: working })).toEqual(NOTHING);
  expect(idleWith({ observation: STALLED }, idleMemory(), ['done', 'done'])).toEqual(NOTHING);
  expect(idleWith({ observation: STALLED }, idleMemory(), ['pending', 'pending'])).toEqual(NOTHING);
});
