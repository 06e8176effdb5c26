/**
 * Proves that a plan with its own windows starts nodes only in these windows, and starts nothing while the windows
 * cannot be read.
 */
import { expect, test } from 'vitest';
import { PLAN_WINDOWS_ANNOTATION, withPlanWindows } from './plan-windows.ts';
import { DEFAULT_POLICY } from './rollout-policy.ts';

const read = (value?: string) =>
  withPlanWindows(
    {
      metadata: {
        name: 'p',
        annotations: value === undefined ? {} : { [PLAN_WINDOWS_ANNOTATION]: value },
      },
    },
    DEFAULT_POLICY,
  );

test('a plan without windows of its own leaves the policy as it is', () => {
  expect(read()).toBe(DEFAULT_POLICY);
});

test('the windows of a plan have the same format as the windows of an UpgradePolicy', () => {
  const windows = [{ days: ['Sunday'], start: '23:00', length: '2h', timeZone: 'Europe/Berlin' }];
  expect(read(JSON.stringify(windows)).planWindows).toEqual([
    { days: [7], startMinute: 23 * 60, lengthMs: 7_200_000, timeZone: 'Europe/Berlin' },
  ]);
});

test.each([
  '',
  'x',
  '[]',
  '{}',
  '[{"start":"22:00","length":"0h","timeZone":"UTC"}]',
  '[{"start":"22:00","length":"1h","timeZone":"Mars/Base"}]',
])('nothing starts while the windows of a plan are %j', (value) => {
  const { problems, planWindows } = read(value);
  expect(planWindows).toBeUndefined();
  expect(problems[0]?.message).toContain(
    'is not a list of windows; write it as spec.windows of an UpgradePolicy',
  );
});
