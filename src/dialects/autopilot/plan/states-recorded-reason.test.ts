/** Proves that a reason is the same after it was written into a status and read back. */
import { expect, test } from 'vitest';
import { because, REASONS, type ReasonCode } from '../../../engine/model/reasons.ts';
import type { RolloutPhase } from '../../../engine/model/rollout.ts';
import { subjectOf } from './problems.ts';
import { reasonOf, textOf } from './states.ts';

const codes = Object.keys(REASONS) as ReasonCode[];
const phases: RolloutPhase[] = ['running', 'done', 'failed', 'incomplete', 'invalid'];

test.each(phases)('every reason of a rollout that is %s', (phase) => {
  for (const code of codes) {
    const reason = because(code, 'w1: FailedDownload: the server said 404');
    expect(reasonOf(textOf(reason, phase), phase)).toEqual(reason);
  }
});

test.each<[RolloutPhase, ReasonCode, string]>([
  ['failed', 'TargetFailed', 'w1: 404'],
  ['failed', 'DeadlineExceeded', 'DeadlineExceeded: w1: 404'],
  ['incomplete', 'TargetMissing', 'w1: 404'],
  ['incomplete', 'PlatformUnsupported', 'PlatformUnsupported: w1: 404'],
  ['invalid', 'InvalidPlan', 'w1: 404'],
])('a rollout that is %s for %s says %j', (phase, code, text) => {
  expect(textOf(because(code, 'w1: 404'), phase)).toBe(text);
});

test.each<[string, RolloutPhase, ReasonCode]>([
  [
    'removedcrds.example.com v1beta1 has been removed in Kubernetes v99.99.99',
    'invalid',
    'RemovedApis',
  ],
  ['NoCodeOfOurs: something', 'failed', 'TargetFailed'],
  ['toString: something', 'incomplete', 'TargetMissing'],
])('%j of another leader is a sentence without code', (text, phase, code) => {
  expect(reasonOf(text, phase)).toEqual({ code, message: text });
});

test('what steers a terminal is not recorded, and the record still tells which field was refused', () => {
  const message = 'spec.commands[0].k0supdate.version: "a\u202Eb\u200B" is not a version';
  const text = textOf(because('InvalidPlan', message), 'invalid');
  expect(text).toBe('spec.commands[0].k0supdate.version: "a\uFFFDb\uFFFD" is not a version');
  expect(subjectOf(text)).toBe(subjectOf(message));
});
