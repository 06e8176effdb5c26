/** Tests that invalid health checks are problems of the policy, so that no target starts under this policy. */
import { expect, test } from 'vitest';
import { buildUpgradePolicy } from '../../../test/support/builders/policies.ts';
import type { UpgradePolicySpec } from '../../api/refit/upgrade-policy.ts';
import { readPolicy } from './read-policy.ts';

const CHECK = {
  name: 'databases',
  apiVersion: 'apps/v1',
  kind: 'StatefulSet',
  expression: 'object.status.readyReplicas == object.spec.replicas',
};

function problemsOf(health: NonNullable<UpgradePolicySpec['health']>): string[] {
  const { problems } = readPolicy(buildUpgradePolicy('nightly', { health }));
  return problems.map(({ code, message }) => `${code}: ${message}`);
}

test('a good expression is no problem', () => {
  expect(problemsOf({ resources: [CHECK] })).toEqual([]);
});

test.each([
  ['object.status.readyReplicas ==', 'Unexpected token: EOF, at character 31'],
  ['status.readyReplicas == 3', 'Unknown variable: status, at character 1'],
  ['"three"', 'it is of the type string, and not bool'],
])('the expression %s is a problem', (expression, fault) => {
  const found = JSON.stringify(expression);
  expect(problemsOf({ resources: [CHECK, { ...CHECK, name: 'other', expression }] })).toEqual([
    `PolicyUnreadable: UpgradePolicy nightly: spec.health.resources[1].expression must be a CEL expression about \`object\` ` +
      `that is true or false (${fault}); found ${found}`,
  ]);
});
