/** Tests when a target counts as late, and when it is checked again. */

import { expect, test } from 'vitest';
import { sent, working } from '../../../test/support/builders/observations.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildFacts } from '../../../test/support/builders/snapshots.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { answered } from '../model/asked.ts';
import type { Observation } from '../model/facts.ts';
import { isLate, timeLeft } from './target-deadlines.ts';

const RESTART: Observation = {
  kind: 'working',
  step: 'Restart',
  part: 'restart',
  attempt: later(0),
  since: later(0),
};
const DRAIN: Observation = { ...RESTART, step: 'Cordoning', part: 'drain', waitsFor: 'drain' };
const target = buildTarget('w1', 'intended', { since: later(0) });
const policy = buildPolicy({ targetDeadlineMs: HOUR });
const { restart, answer } = policy.stepDeadlines;

/**
 * The two times are in milliseconds: first the time since the intent by the wall clock, then the time for which this
 * process has watched the target.
 */
test.each<[string, Observation, number, number | undefined, boolean, number]>([
  [
    'a target is not late before its deadline',
    working('Restart'),
    MINUTE,
    MINUTE,
    false,
    59 * MINUTE,
  ],
  ['a target is late after its deadline', working('Restart'), HOUR, HOUR, true, 0],
  [
    'a target after its deadline gets a minute if this leader has just come',
    working('Restart'),
    HOUR,
    0,
    false,
    MINUTE,
  ],
  [
    'a target after its deadline is not called late by a process that does not watch it',
    working('Restart'),
    HOUR,
    undefined,
    false,
    0,
  ],
  [
    'a node is late if one step takes longer than the deadline of the step',
    RESTART,
    30 * MINUTE,
    restart,
    true,
    0,
  ],
  [
    'a node is not late until one step has taken as long as the deadline of the step',
    RESTART,
    30 * MINUTE,
    restart - 1,
    false,
    1,
  ],
  [
    'a node is not late because a clock jumped ahead',
    RESTART,
    59 * MINUTE,
    1000,
    false,
    restart - 1000,
  ],
  [
    'a node is late if its agent does not answer the signal in time',
    sent(),
    30 * MINUTE,
    answer,
    true,
    0,
  ],
])('%s', (_name, observation, sinceMs, watchedMs, late, left) => {
  const facts = { ...buildFacts({ observation }), watchedMs };
  expect([
    isLate(target, facts, policy, T0 + sinceMs),
    timeLeft(target, facts, policy, T0 + sinceMs),
  ]).toEqual([late, left]);
});

/**
 * The leader was away for eight hours and has watched the target since it returned. The first time is how long the
 * leader has watched the step; the second time is how long it has watched the attempt.
 */
test.each<[string, Observation, number, number, boolean, number]>([
  [
    'the present step of the node has its own time',
    RESTART,
    MINUTE,
    MINUTE,
    false,
    restart - MINUTE,
  ],
  ['the present step of the node is late after its own time', RESTART, restart, restart, true, 0],
  ['the next step of the node has its own time', RESTART, 0, 30 * MINUTE, false, restart],
  ['a drain has a time of its own', DRAIN, 30 * MINUTE, 30 * MINUTE, false, 30 * MINUTE],
  ['all steps together have no more than a new target', RESTART, 0, HOUR, true, 0],
])(
  'a leader that was away and is back: %s',
  (_name, observation, watchedMs, followedMs, late, left) => {
    const facts = {
      ...buildFacts({ observation, drainDelegation: answered(true) }),
      watchedMs,
      followedMs,
    };
    const now = T0 + 8 * HOUR;
    expect([isLate(target, facts, policy, now), timeLeft(target, facts, policy, now)]).toEqual([
      late,
      left,
    ]);
  },
);

test('a future time by the clock of another leader extends no deadline', () => {
  const facts = { ...buildFacts({ observation: working('Restart') }), watchedMs: 59 * MINUTE };
  const now = T0 - 3 * HOUR;
  expect(timeLeft(target, facts, policy, now)).toBe(MINUTE);
  expect(isLate(target, { ...facts, watchedMs: HOUR }, policy, now)).toBe(true);
});

test.each([
  ['of the leader: it keeps the deadline, with its choice', answered(true), false],
  ['of the node itself: nobody else could', answered(false), true],
])('a drain that takes too long, %s', (_name, drainDelegation, late) => {
  const facts = {
    ...buildFacts({ observation: DRAIN, drainDelegation }),
    watchedMs: policy.stepDeadlines.drain,
  };
  const patient = { ...policy, targetDeadlineMs: 9 * HOUR };
  expect(isLate(target, facts, patient, T0 + policy.stepDeadlines.drain)).toBe(late);
});
