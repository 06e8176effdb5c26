/** Tests that the checks because of which nodes failed are found by their whole names. */
import { expect, test } from 'vitest';
import type { HealthCheck } from '../../health/checks.ts';
import { because, type Reason } from '../model/reasons.ts';
import { failedChecks, readCheckFailure, titleOfCheck } from './health-check.ts';

const check = { name: 'error-rate' } as HealthCheck;
const policy = { name: 'canary', health: { checks: [check] } } as Parameters<
  typeof failedChecks
>[1];

function causeOf(name: string): Reason[] {
  const message = `${titleOfCheck(name, policy)} fails: the value is 0.1`;
  return [readCheckFailure({ message }) ?? { code: 'TargetFailed', message }];
}

test('a check is found in the cause of a failure by its whole name, and only if the policy has it', () => {
  expect(causeOf('error-rate')[0]?.details).toEqual({ policy: 'canary', check: 'error-rate' });
  expect(failedChecks(causeOf('error-rate'), policy)).toEqual(['error-rate']);
  expect(failedChecks(causeOf('error-rates'), policy)).toEqual([]);
  expect(failedChecks(causeOf('error-rate'), { name: 'canary' })).toEqual([]);
  expect(failedChecks(causeOf('error-rate'), { ...policy, name: 'other' })).toEqual([]);
  expect(failedChecks([], policy)).toEqual([]);
});

test('code reads the details of a cause, and not its sentence', () => {
  const details = { policy: 'canary', check: 'error-rate' };
  const causes = [because('HealthCheckFailing', 'other words', details)];
  expect(failedChecks(causes, policy)).toEqual(['error-rate']);
  const [{ code, message } = because('TargetFailed', '')] = causeOf('error-rate');
  expect(failedChecks([{ code, message }], policy)).toEqual([]);
});

test('a sentence about something else names no check', () => {
  expect(readCheckFailure({ message: 'w1: the health check failed' })).toBeUndefined();
});
