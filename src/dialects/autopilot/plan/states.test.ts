/** Proves that the state words equal the words of the original, because scripts compare them. */
import { expect, test } from 'vitest';
import { because, type ReasonCode } from '../../../engine/model/reasons.ts';
import type { RecordedState, RolloutPhase } from '../../../engine/model/rollout.ts';
import {
  phaseOfPlan,
  planStateOf,
  reasonOfState,
  recordedStateOf,
  TARGET_STATES,
} from './states.ts';

test.each<[RolloutPhase, blocked: boolean, string]>([
  ['new', false, 'SchedulableWait'],
  ['running', false, 'SchedulableWait'],
  ['running', true, 'Schedulable'],
  ['done', false, 'Completed'],
  ['failed', false, 'ApplyFailed'],
  ['incomplete', false, 'IncompleteTargets'],
  ['invalid', false, 'Warning'],
])('a rollout that is %s (blocked: %s) is written as %s', (phase, blocked, word) => {
  expect(planStateOf({ phase, blocked })).toBe(word);
});

test('a plan that ended because an API server was not ready has the word of earlier releases of k0s', () => {
  const reason = because('ControlPlaneNotReady', 'the API server of c2 is not ready');
  expect(planStateOf({ phase: 'incomplete', blocked: false, reason })).toBe('InconsistentTargets');
  expect(planStateOf({ phase: 'failed', blocked: false, reason })).toBe('ApplyFailed');
});

test('a plan with excluded nodes has the word of the documentation of k0s', () => {
  const reason = because('Excluded', 'w1 is excluded');
  expect(planStateOf({ phase: 'invalid', blocked: false, reason })).toBe('Restricted');
});

test.each<[string | undefined, RolloutPhase]>([
  [undefined, 'new'],
  ['', 'new'],
  ['SchedulableWait', 'running'],
  ['Schedulable', 'running'],
  ['Completed', 'done'],
  ['ApplyFailed', 'failed'],
  ['IncompleteTargets', 'incomplete'],
  ['InconsistentTargets', 'incomplete'],
  ['MissingSignalNode', 'incomplete'],
  ['Warning', 'invalid'],
  ['Restricted', 'invalid'],
  ['schedulable', 'invalid'],
  ['SomethingNew', 'invalid'],
  ['constructor', 'invalid'],
])('a plan in state %j is %s', (word, phase) => {
  expect(phaseOfPlan(word)).toBe(phase);
});

test.each<[string, ReasonCode | undefined]>([
  ['SchedulableWait', undefined],
  ['Completed', undefined],
  ['ApplyFailed', undefined],
  ['Warning', undefined],
  ['IncompleteTargets', undefined],
  ['MissingSignalNode', 'TargetMissing'],
  ['InconsistentTargets', 'ControlPlaneNotReady'],
  ['Restricted', 'Excluded'],
  ['SomethingNew', 'RecordUnread'],
])('the state %s without a text tells the reason %s', (state, code) => {
  const reason = reasonOfState(state);
  expect(reason?.code).toBe(code);
  if (reason !== undefined) expect(reason.message).toContain(state);
});

test('the reason of an unknown state is short and printable, whatever somebody wrote there', () => {
  const message = reasonOfState(`a\u001B[2J${'x'.repeat(47_000)}`)?.message ?? '';
  expect(message).toContain('"a\uFFFD[2Jxxx');
  expect(message.length).toBeLessThan(200);
});

test.each<[RecordedState, string]>([
  ['pending', 'SignalPending'],
  ['intended', 'SignalSent'],
  ['done', 'SignalCompleted'],
  ['failed', 'SignalApplyFailed'],
  ['missing', 'SignalMissingNode'],
  ['unsupported', 'SignalMissingPlatform'],
])('a target that is %s is written as %s, and read back', (state, word) => {
  expect(TARGET_STATES[state]).toBe(word);
  expect(recordedStateOf(word)).toBe(state);
});

test.each(['', 'signalsent', 'SomethingNew'])(
  'a target in state %j counts as failed: it is not done',
  (word) => {
    expect(recordedStateOf(word)).toBe('failed');
  },
);
