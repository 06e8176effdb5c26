/** Tests which policy applies to a plan, whatever the order of the list is. */
import { assert, constantFrom, property, shuffledSubarray } from 'fast-check';
import { expect, test } from 'vitest';
import { buildUpgradePolicy } from '../../../test/support/builders/policies.ts';
import {
  DIALECT_NAMES,
  type UpgradePolicy,
  type UpgradePolicySpec,
} from '../../api/refit/upgrade-policy.ts';
import type { PlanRef } from '../contract/plan-objects.ts';
import { policyOfPlan } from './choose-policy.ts';
import { DEFAULT_POLICY, type RolloutPolicy } from './rollout-policy.ts';

const [ONE, OTHER] = DIALECT_NAMES;
const PLAN = { dialect: ONE, name: 'fleet' };
const NAMESPACED = { dialect: OTHER, namespace: 'upgrades', name: 'fleet' };

type Plans = UpgradePolicySpec['plans'];

const ALL = buildUpgradePolicy('all');
const EVERY_ENTRY = buildUpgradePolicy('every-entry', { plans: [{}] });
const DIALECT = buildUpgradePolicy('dialect', { plans: [{ dialect: ONE }] });
const NAMESPACE = buildUpgradePolicy('namespace', { plans: [{ namespace: 'upgrades' }] });
const NAMED = buildUpgradePolicy('named', { plans: [{ name: 'fleet' }] });
const NAMED_EXACTLY = buildUpgradePolicy('named-exactly', {
  plans: [{ dialect: ONE, name: 'fleet' }],
});
const ELSEWHERE = buildUpgradePolicy('elsewhere', {
  plans: [{ name: 'other' }, { dialect: OTHER, namespace: 'x' }],
});
const NONE = buildUpgradePolicy('none', { plans: [] });
const EVERYTHING = [ALL, EVERY_ENTRY, DIALECT, NAMESPACE, NAMED, NAMED_EXACTLY, ELSEWHERE, NONE];

function policyFor(
  policies: readonly UpgradePolicy[],
  { dialect, name, namespace }: PlanRef,
): RolloutPolicy {
  const metadata = { name, ...(namespace === undefined ? {} : { namespace }) };
  return policyOfPlan({ name: dialect }, policies, { metadata });
}

test.each<[string, Plans, boolean]>([
  ['no list', undefined, true],
  ['an empty list', [], false],
  ['an entry that says nothing', [{}], true],
  ['its dialect', [{ dialect: ONE }], true],
  ['another dialect', [{ dialect: OTHER }], false],
  ['its name', [{ name: 'fleet' }], true],
  ['another name', [{ name: 'fleets' }], false],
  ['a namespace, where it has none', [{ namespace: 'upgrades' }], false],
  ['its name in another dialect', [{ dialect: OTHER, name: 'fleet' }], false],
  ['one entry of two', [{ name: 'other' }, { name: 'fleet' }], true],
])('a policy with %s covers the plan: %s', (_, plans, covers) => {
  const policy = buildUpgradePolicy('p', { ...(plans ? { plans } : {}), failureBudget: 7 });
  expect(policyFor([policy], PLAN)).toEqual({
    ...DEFAULT_POLICY,
    ...(covers ? { name: 'p', maxFailures: 7 } : {}),
  });
});

test.each([
  ['its name and dialect before its name', [NAMED, NAMED_EXACTLY], PLAN, 'named-exactly'],
  ['its name before its dialect', [DIALECT, NAMED], PLAN, 'named'],
  ['its dialect before nothing', [ALL, DIALECT], PLAN, 'dialect'],
  ['its name before its namespace', [NAMESPACE, NAMED], NAMESPACED, 'named'],
  ['its namespace before nothing', [ALL, NAMESPACE], NAMESPACED, 'namespace'],
  ['of two entries that say as much the first by name', [EVERY_ENTRY, ALL], PLAN, 'all'],
  ['no policy covers the plan', [ELSEWHERE, NONE], PLAN, undefined],
  ['there is no policy at all', [], PLAN, undefined],
])('the policy that applies to a plan: %s', (_, policies, plan, name) => {
  expect(policyFor(policies, plan).name).toBe(name);
});

test('a policy is ranked by its closest entry for the plan', () => {
  const broad = buildUpgradePolicy('broad', { plans: [{}, { name: 'fleet', dialect: ONE }] });
  expect(policyFor([NAMED, broad], PLAN).name).toBe('broad');
});

test('the order of the policies in the list does not matter', () => {
  assert(
    property(
      constantFrom(PLAN, NAMESPACED),
      shuffledSubarray(EVERYTHING),
      (plan, some) => policyFor(some, plan).name === policyFor(some.toReversed(), plan).name,
    ),
  );
});

test('the policy that applies blocks the plan when it is invalid; another policy does not', () => {
  const unreadable = buildUpgradePolicy('unreadable', { plans: [{ dialect: ONE }], soak: '9000h' });
  expect(policyFor([ALL, unreadable], PLAN).problems).toHaveLength(1);
  expect(policyFor([NAMED, unreadable], PLAN)).toEqual({ ...DEFAULT_POLICY, name: 'named' });
  expect(policyFor([ALL, unreadable], NAMESPACED).problems).toEqual([]);
});
