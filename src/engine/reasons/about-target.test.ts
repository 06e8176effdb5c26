/** Tests which target a sentence is about, also for names that are a part of other names. */
import { describe, expect, test } from 'vitest';
import { because } from '../model/reasons.ts';
import {
  isNamedIn,
  isPartOf,
  readSubject,
  reasonAbout,
  retold,
  saidAbout,
  tellsFailure,
  tellsOnly,
} from './about-target.ts';

test.each<[string, string | undefined]>([
  ['w1: FailedDownload: 404', 'FailedDownload: 404'],
  ['w1 did not report within its deadline', 'did not report within its deadline'],
  ['node w1 is not Ready', 'is not Ready'],
  ['w10: FailedDownload: 404', undefined],
  ['the health check w1 of UpgradePolicy nightly fails', undefined],
])('the message %j says %j about w1', (message, said) => {
  expect(saidAbout('w1', message)).toBe(said);
});

test.each<[string, string]>([
  ['the health check errors fails', 'w1: the health check errors fails'],
  ['w1: FailedDownload: 404', 'w1: FailedDownload: 404'],
  ['node w1 is not Ready', 'node w1 is not Ready'],
  ['w10 is not Ready', 'w1: w10 is not Ready'],
])('the reason %j names its target once as the reason of a rollout', (message, expected) => {
  expect(reasonAbout('w1', because('TargetFailed', message)).message).toBe(expected);
});

/** Names that a Node may have and that look like other words of a sentence. */
const NAMES = ['w1', 'w10', 'node', 'w1.example.com', 'failed', 'a-b', '1'];

/** What may be said of a target with this name. */
const sayingsOf = (name: string): readonly string[] => [
  'the kubelet does not start',
  `${name}: FailedDownload: 404`,
  `${name} failed: no space left`,
  `node ${name} is not Ready`,
  'node w1 is not Ready',
];

describe('the name of a target is read again from the reason of a rollout,', () => {
  test.each(NAMES)('for the name %j among names that look alike', (name) => {
    const targets = NAMES.map((each) => ({ name: each }));
    for (const said of sayingsOf(name)) {
      const { message, about } = reasonAbout(name, because('TargetFailed', said));
      expect(about).toEqual([name]);
      expect(readSubject(targets, message)).toBe(name);
      expect(readSubject(targets.toReversed(), message)).toBe(name);
    }
  });
});

test.each([
  'the health check w1 of UpgradePolicy nightly fails',
  '2 of 3 targets done; failed: w1',
  'w1, w2 would go from v1.36.3 down to v1.35.1',
  'w2: FailedDownload: 404',
  '',
])('the reason %j is about none of the targets w1 and w10', (sentence) => {
  expect(readSubject([{ name: 'w1' }, { name: 'w10' }], sentence)).toBeUndefined();
});

test.each<[string, boolean]>([
  ['w1 waits', true],
  ['the node w1, which is held', true],
  ['it waits for w1.', true],
  ['w10 waits', false],
  ['w1.example waits', false],
  ['my-w1 waits', false],
  ['w1-a and w1 wait', true],
])('whether %j names w1 is %j', (sentence, expected) => {
  expect(isNamedIn('w1', sentence)).toBe(expected);
});

test('a wait for the first target is told again about another target, and about nothing else', () => {
  const reason = because('EarlierStage', 'w1 waits for c1');
  expect(retold(reason, 'w1', 'w10').message).toBe('w10 waits for c1');
  expect(retold(reason, 'w', 'w10')).toBe(reason);
});

test('a sentence repeats a failure only if it is about the target with this failure', () => {
  const failure = 'FailedDownload: 404';
  expect(tellsOnly('w1', failure, 'w1: FailedDownload: 404')).toBe(true);
  expect(tellsOnly('w1', failure, 'w1: FailedDownload')).toBe(true);
  expect(tellsOnly('w1', failure, 'w1: FailedDownload: 404, and 3 more')).toBe(false);
  expect(tellsOnly('w1', failure, 'w10: FailedDownload: 404')).toBe(false);
  expect(tellsFailure('w1', failure, 'w1: FailedDownload: 404, and 3 more')).toBe(true);
  expect(tellsFailure('w1', failure, 'w10: FailedDownload: 404')).toBe(false);
  const ofJob = 'Job upgrade failed on Node w1: 404';
  expect(tellsFailure('w1', ofJob, ofJob)).toBe(true);
  expect(tellsFailure('w1', ofJob, 'Job upgrade failed on Node w10: 404')).toBe(false);
  expect(tellsFailure('w', ofJob, ofJob)).toBe(false);
  expect(isPartOf('404', because('Stalled', failure))).toBe(true);
  expect(isPartOf('w1: 404', because('Stalled', failure))).toBe(false);
});
