/** Tests that the checks because of which nodes failed are found by their whole names. */
import { expect, test } from 'vitest';
import type { HealthCheck } from '../../health/checks.ts';
import { failedChecks, titleOfCheck } from './health-check.ts';

test('a check is found in the reason of a failure by its whole name, and only if the policy has it', () => {
  const check = { name: 'error-rate' } as HealthCheck;
  const policy = { name: 'canary', health: { checks: [check] } } as Parameters<
    typeof failedChecks
  >[1];
  const reasonOf = (name: string) => `${titleOfCheck(name, policy)} fails: the value is 0.1`;
  expect(failedChecks([reasonOf('error-rate')], policy)).toEqual(['error-rate']);
  expect(failedChecks([reasonOf('error-rates')], policy)).toEqual([]);
  expect(failedChecks([reasonOf('error-rate')], { name: 'canary' })).toEqual([]);
  expect(failedChecks([], policy)).toEqual([]);
});
