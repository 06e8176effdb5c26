/** Tests that the fields of a plan change the policy that applies to it. */
import { expect, test } from 'vitest';
import { buildUpgradePolicy } from '../../../test/support/builders/policies.ts';
import { DIALECT_NAMES } from '../../api/refit/upgrade-policy.ts';
import { policyOfPlan } from './choose-policy.ts';
import { DEFAULT_POLICY, type RolloutPolicy } from './rollout-policy.ts';

const [NAME] = DIALECT_NAMES;
const PLAN = { metadata: { name: 'fleet' } };
const COVERING = buildUpgradePolicy('calm', { plans: [{ name: 'fleet' }], failureBudget: 2 });
const own = (_plan: object, policy: RolloutPolicy): RolloutPolicy => ({
  ...policy,
  targetDeadlineMs: policy.name === undefined ? 1000 : policy.targetDeadlineMs,
  maxFailures: policy.maxFailures + 1,
});

test('a plan that no policy covers has the default policy with the fields of the plan', () => {
  expect(policyOfPlan({ name: NAME }, [], PLAN)).toBe(DEFAULT_POLICY);
  expect(policyOfPlan({ name: NAME, planRules: { apply: own } }, [], PLAN)).toMatchObject({
    targetDeadlineMs: 1000,
    maxFailures: 1,
  });
});

test('a covered plan has the fields of its policy, and names the policy', () => {
  const { name, maxFailures, targetDeadlineMs } = policyOfPlan(
    { name: NAME, planRules: { apply: own } },
    [COVERING],
    PLAN,
  );
  expect([name, maxFailures, targetDeadlineMs]).toEqual([
    'calm',
    3,
    DEFAULT_POLICY.targetDeadlineMs,
  ]);
});
