/** Shows what the user is told to do about a failed plan whose nodes failed because of a hook. */
import { expect, test } from 'vitest';
import { fixOf } from './plan-runners.ts';
import type { PlanView } from './status/view.ts';

const HOOK = 'the hook detach of UpgradePolicy nightly failed: Job a/b failed';

test.each<[string, string | undefined, string | undefined, string]>([
  ['after the drain, as its agent reports', HOOK, undefined, 'Repair what the hook reports'],
  ['before the drain, as the plan says', undefined, `w1: ${HOOK}`, 'Repair what the hook reports'],
  ['of another node', 'no space left', `w2: ${HOOK}`, 'Fix the cause'],
])('a hook that failed %s', (_when, failure, reason, remedy) => {
  const stages = [{ targets: [{ name: 'w1', phase: 'failed', failure }] }];
  const plan = { dialect: 'autopilot', name: 'autopilot', phase: 'failed', stages, reason };
  const fix = fixOf(plan as unknown as PlanView);
  expect(fix).toContain(`Failed. ${remedy}`);
  expect(fix).toContain('run: refit retry w1');
});
