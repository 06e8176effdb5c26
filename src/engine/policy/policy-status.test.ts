/** Owns the proof of what a policy's status tells people, and that it is written only when it changes. */
import { expect, test } from 'vitest';
import { buildUpgradePolicy } from '../../../test/builders/policies.ts';
import { HOUR, later, T0 } from '../../../test/builders/times.ts';
import type { UpgradePolicy } from '../../api/refit/upgrade-policy.ts';
import { DIALECT_NAMES } from '../../api/refit/upgrade-policy.ts';
import { withStatus } from './policy-status.ts';

const [ONE, OTHER] = DIALECT_NAMES;
const PLANS = [
  { dialect: ONE, name: 'fleet' },
  { dialect: OTHER, namespace: 'upgrades', name: 'servers' },
];

const ALPHA = buildUpgradePolicy('alpha');
const BETA = buildUpgradePolicy('beta');
const CLOSER = buildUpgradePolicy('closer', { plans: [{ dialect: ONE }] });
const BROKEN = buildUpgradePolicy('broken', {
  soak: '0h',
  windows: [{ start: '22:00', length: '0h', timeZone: 'UTC' }],
});

/** Conditions as `Type=Status Reason: message`. */
function told(policy: UpgradePolicy): string[] {
  return (policy.status?.conditions ?? []).map(
    ({ type, status, reason, message }) => `${type}=${status} ${reason}: ${message}`,
  );
}

test('one that counts for every plan names them', () => {
  const { status } = withStatus(ALPHA, [ALPHA], PLANS, T0);
  expect(status?.covers).toEqual([`${ONE}/fleet`, `${OTHER}/upgrades/servers`]);
  expect(status?.observedGeneration).toBe(1);
  expect(told(withStatus(ALPHA, [ALPHA], PLANS, T0))).toEqual([
    'Overruled=False NoTie: no other policy names a plan as closely',
    'Readable=True Readable: every field can be read',
  ]);
});

test('of two that say as much the second by name tells that it does not count', () => {
  const second = withStatus(BETA, [ALPHA, BETA], PLANS, T0);
  expect(second.status?.covers).toEqual([]);
  expect(told(second)[0]).toBe(
    `Overruled=True FirstByName: UpgradePolicy alpha names ${ONE}/fleet as closely, and comes first by name; ` +
      `UpgradePolicy alpha names ${OTHER}/upgrades/servers as closely, and comes first by name`,
  );
  expect(told(withStatus(ALPHA, [ALPHA, BETA], PLANS, T0))[0]).toContain('Overruled=False');
});

test('to be less close than another is no fault', () => {
  const general = withStatus(ALPHA, [ALPHA, CLOSER], PLANS, T0);
  expect(general.status?.covers).toEqual([`${OTHER}/upgrades/servers`]);
  expect(told(general)[0]).toContain('Overruled=False');
});

test('one that cannot be read names every field', () => {
  const status = told(withStatus(BROKEN, [BROKEN], PLANS, T0));
  expect(status[1]).toMatch(/^Readable=False PolicyUnreadable: .*spec\.soak .*; .*spec\.windows\[0\]\.length /);
});

test('what did not change is not written', () => {
  const told = withStatus(ALPHA, [ALPHA], PLANS, T0);
  expect(withStatus(told, [told], PLANS, T0 + HOUR)).toBe(told);
});

test('a condition keeps the time of its last change', () => {
  const before = withStatus(ALPHA, [ALPHA], PLANS, T0);
  const after = withStatus(before, [before], PLANS.slice(1), T0 + HOUR);
  expect(after.status?.covers).toEqual([`${OTHER}/upgrades/servers`]);
  expect(after.status?.conditions?.map(({ lastTransitionTime }) => lastTransitionTime)).toEqual([later(0), later(0)]);
});

test('no more than a hundred plans are told', () => {
  const plans = Array.from({ length: 150 }, (_, index) => ({ dialect: ONE, name: `p${index}` }));
  expect(withStatus(ALPHA, [ALPHA], plans, T0).status?.covers).toHaveLength(100);
});
