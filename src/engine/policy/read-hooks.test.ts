/**
 * Tests which hooks of a policy are refused, and that each problem names the field, the found value and a correct
 * value.
 */
import { expect, test } from 'vitest';
import type { UpgradePolicySpec } from '../../api/refit/upgrade-policy.ts';
import { hooksIn } from './read-hooks.ts';

type Hooks = NonNullable<UpgradePolicySpec['hooks']>;

const BASE = { name: 'check', when: 'AfterDrain', timeout: '5m' } as const;
const webhook = { url: 'https://hooks.example.com/refit', secretName: 'refit-hooks' };
const job = {
  namespace: 'refit-hooks',
  template: { spec: { containers: [{ name: 'hook', image: 'registry.example.com/hook:1' }] } },
};

function problemsOf(hooks: Hooks, drains = true): string[] {
  const problems: string[] = [];
  hooksIn(
    hooks,
    (field, wanted, found) => {
      problems.push(`${field} must be ${wanted}; found ${JSON.stringify(found)}`);
    },
    drains,
  );
  return problems;
}

test.each<[string, Hooks, string]>([
  [
    'a Job and a webhook',
    [{ ...BASE, job, webhook }],
    'hooks[0] must be a hook with either job or webhook; found "both"',
  ],
  [
    'neither a Job nor a webhook',
    [BASE],
    'hooks[0] must be a hook with either job or webhook; found "neither"',
  ],
  [
    'a name twice',
    [
      { ...BASE, webhook },
      { ...BASE, webhook },
    ],
    'hooks[1].name must be a name that no other hook has; found "check"',
  ],
  [
    'no time',
    [{ ...BASE, webhook, timeout: '0s' }],
    'hooks[0].timeout must be a time above zero and up to 168 h, such as 10m; found "0s"',
  ],
  [
    'a node for a hook of the plan',
    [{ ...BASE, when: 'BeforePlan', job: { ...job, pinToNode: true } }],
    'hooks[0].job.pinToNode must be false, because a hook with when: BeforePlan runs for the whole plan, not for one node; found true',
  ],
])('the problem of a hook is named: %s', (_what, hooks, problem) => {
  expect(problemsOf(hooks)).toEqual([problem]);
});

test('a hook after a drain is a problem if the policy does not drain nodes', () => {
  const hooks: Hooks = [{ ...BASE, webhook }];
  expect(problemsOf(hooks)).toEqual([]);
  expect(problemsOf(hooks, false)).toEqual([
    'hooks[0].when must be a moment other than AfterDrain, for example BeforeRestart, because drain.enabled is false; found "AfterDrain"',
  ]);
});
