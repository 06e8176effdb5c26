/** Tests the status of a policy, and that it is written only when it changes. */

import { expect, test } from 'vitest';
import { buildUpgradePolicy } from '../../../test/support/builders/policies.ts';
import { HOUR, later, T0 } from '../../../test/support/clock/times.ts';
import { DIALECT_NAMES, type UpgradePolicy } from '../../api/refit/upgrade-policy.ts';
import { EVERY_CONTROLLER, jobNamespaces } from '../../kube/job-namespaces.ts';
import { type PolicyContext, withStatus } from './policy-controller.ts';
import { type FieldEffect, noEffect, type PolicyEffects, WORKS } from './policy-effects.ts';

const [ONE, OTHER] = DIALECT_NAMES;
const FLEET = { dialect: ONE, name: 'fleet' };
const SERVERS = { dialect: OTHER, namespace: 'upgrades', name: 'servers' };

const ALPHA = buildUpgradePolicy('alpha');
const BETA = buildUpgradePolicy('beta');
const CLOSER = buildUpgradePolicy('closer', { plans: [{ dialect: ONE }] });
const BROKEN = buildUpgradePolicy('broken', {
  soak: '9000h',
  windows: [{ start: '22:00', length: '0h', timeZone: 'UTC' }],
});

/** Returns the context of a process that carries out both dialects. */
function among(
  policies: readonly UpgradePolicy[],
  more: Partial<PolicyContext> = {},
): PolicyContext {
  const jobs = EVERY_CONTROLLER;
  return { policies, dialects: [ONE, OTHER], plans: [FLEET, SERVERS], jobs, effects: {}, ...more };
}

/** Returns the conditions, each as `Type=Status Reason: message`. */
function told(policy: UpgradePolicy): string[] {
  return (policy.status?.conditions ?? []).map(
    ({ type, status, reason, message }) => `${type}=${status} ${reason}: ${message}`,
  );
}

test('the status of a policy for every plan lists the plans', () => {
  const policy = withStatus(ALPHA, among([ALPHA]), T0);
  expect(policy.status?.covers).toEqual([`${ONE}/fleet`, `${OTHER}/upgrades/servers`]);
  expect(policy.status?.observedGeneration).toBe(1);
  expect(told(policy)).toEqual([
    'Accepted=True Accepted: every field is valid',
    'Conflicted=False NoConflict: no other policy has the same entry',
  ]);
});

test('of two policies for all plans, the second by name says that it does not apply', () => {
  const second = withStatus(BETA, among([BETA, ALPHA]), T0);
  expect(second.status?.covers).toEqual([]);
  expect(told(second)[1]).toBe(
    'Conflicted=True SameEntry: ignored for all plans: UpgradePolicy alpha has the same entry, and its name comes first in alphabetical order',
  );
  expect(told(withStatus(ALPHA, among([BETA, ALPHA]), T0))[1]).toContain('Conflicted=False');
});

test('the status of a policy names an entry that another policy has, too', () => {
  const first = buildUpgradePolicy('first', {
    plans: [{ name: 'fleet', dialect: ONE }, { namespace: 'x' }],
  });
  const second = buildUpgradePolicy('second', {
    plans: [{ namespace: 'y' }, { dialect: ONE, name: 'fleet' }],
  });
  expect(told(withStatus(second, among([first, second, ALPHA]), T0))[1]).toBe(
    `Conflicted=True SameEntry: ignored for plans with dialect ${ONE}, name fleet: UpgradePolicy first has the same entry, and its name comes first in alphabetical order`,
  );
});

test('a less specific policy is no conflict', () => {
  const general = withStatus(ALPHA, among([ALPHA, CLOSER]), T0);
  expect(general.status?.covers).toEqual([`${OTHER}/upgrades/servers`]);
  expect(told(general)[1]).toContain('Conflicted=False');
});

test('the status of an invalid policy names every wrong field', () => {
  const [accepted] = told(withStatus(BROKEN, among([BROKEN]), T0));
  expect(accepted).toMatch(
    /^Accepted=False PolicyUnreadable: .*spec\.soak .*; .*spec\.windows\[0\]\.length /,
  );
});

test('two processes with one dialect each keep what the other wrote', () => {
  const mine = { dialects: [ONE], plans: [FLEET] };
  const theirs = { dialects: [OTHER], plans: [SERVERS] };
  const first = withStatus(ALPHA, among([ALPHA], mine), T0);
  const both = withStatus(first, among([first], theirs), T0);
  expect(both.status?.covers).toEqual([`${ONE}/fleet`, `${OTHER}/upgrades/servers`]);
  expect(withStatus(both, among([both], mine), T0)).toBe(both);
  expect(withStatus(both, among([both], { ...theirs, plans: [] }), T0).status?.covers).toEqual([
    `${ONE}/fleet`,
  ]);
});

test('the status of a policy is not written if it did not change', () => {
  const policy = withStatus(ALPHA, among([ALPHA]), T0);
  expect(withStatus(policy, among([policy]), T0 + HOUR)).toBe(policy);
});

test('a condition keeps the time of its last change', () => {
  const before = withStatus(ALPHA, among([ALPHA]), T0);
  const after = withStatus(before, among([before], { plans: [SERVERS] }), T0 + HOUR);
  expect(after.status?.covers).toEqual([`${OTHER}/upgrades/servers`]);
  expect(after.status?.conditions?.map(({ lastTransitionTime }) => lastTransitionTime)).toEqual([
    later(0),
    later(0),
  ]);
});

test('status.covers lists at most a hundred plans', () => {
  const plans = Array.from({ length: 150 }, (_, index) => ({ dialect: ONE, name: `p${index}` }));
  expect(withStatus(ALPHA, among([ALPHA], { plans }), T0).status?.covers).toHaveLength(100);
});

test('only the process with the plans of a policy says whether the Jobs of the policy are allowed', () => {
  const template = { spec: { containers: [{ name: 'c', image: 'i' }] } };
  const job = { namespace: 'backups', template };
  const policy = buildUpgradePolicy('hooked', {
    hooks: [{ name: 'backup', when: 'BeforeDrain', timeout: '5m', job }],
  });
  const refusing = jobNamespaces({ listed: ['others'], reserved: [] });
  const allowing = jobNamespaces({ listed: ['backups'], reserved: [] });
  const mine = { dialects: [ONE], plans: [FLEET], jobs: allowing };
  const first = withStatus(policy, among([policy], mine), T0);
  expect(told(first)[0]).toContain('Accepted=True');
  const theirs = { dialects: [OTHER], plans: [], jobs: refusing };
  expect(withStatus(first, among([first], theirs), T0 + HOUR)).toBe(first);
  const refused = withStatus(first, among([first], { ...mine, jobs: refusing }), T0);
  expect(told(refused)[0]).toContain('Accepted=False');
  const edited = { ...first, metadata: { ...first.metadata, generation: 2 } };
  expect(told(withStatus(edited, among([edited], theirs), T0))[0]).toContain('Accepted=True');
});

test('a policy with fields that have no effect on the plans that it covers says so, for each dialect', () => {
  const policy = buildUpgradePolicy('alpha', { soak: '1m', settle: '1m' });
  const works = Object.fromEntries(['soak', 'settle'].map((field) => [field, WORKS]));
  const effectsWith = (soak: FieldEffect) => ({ ...works, soak }) as unknown as PolicyEffects;
  const one = { dialects: [ONE], plans: [FLEET], effects: { [ONE]: effectsWith(WORKS) } };
  const other = {
    dialects: [OTHER],
    plans: [SERVERS],
    effects: { [OTHER]: effectsWith(noEffect('nothing is restarted')) },
  };
  const lacking = `spec.soak has no effect on plans of ${OTHER}: nothing is restarted`;
  const byOther = withStatus(policy, among([policy], other), T0);
  expect(byOther.status?.noEffect).toEqual([{ dialect: OTHER, message: lacking }]);
  expect(told(byOther)).toContain(`NoEffect=True FieldsWithoutEffect: ${lacking}`);
  // The process of the other dialect does not know these plans, and keeps what is written about them.
  const byBoth = withStatus(byOther, among([policy], one), T0);
  expect(byBoth.status?.noEffect).toEqual(byOther.status?.noEffect);
  expect(told(byBoth)).toContain(`NoEffect=True FieldsWithoutEffect: ${lacking}`);
  // Once the policy covers no such plan, nothing is said any more.
  const gone = withStatus(byBoth, among([policy], { ...other, plans: [] }), T0);
  expect(gone.status?.noEffect).toBeUndefined();
  expect(told(gone).filter((line) => line.startsWith('NoEffect'))).toEqual([]);
});
