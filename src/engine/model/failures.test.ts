/** Tests which target the reason of a whole rollout is about. */
import { expect, test } from 'vitest';
import { reasonAbout, saidAbout, withFailures } from './failures.ts';
import { because } from './reasons.ts';

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

test('failures of another run are not remembered', () => {
  const first = { run: 'uid/a', reasons: { w1: because('TargetFailed', '404') } };
  const more = { run: 'uid/a', reasons: { w2: because('HealthCheckFailing', 'too many errors') } };
  expect(Object.keys(withFailures(first, more).reasons)).toEqual(['w1', 'w2']);
  expect(withFailures(first, { ...more, run: 'uid/b' })).toEqual({ ...more, run: 'uid/b' });
});
