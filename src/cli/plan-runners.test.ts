/** Shows which remedy the user gets for a failed plan whose nodes failed because of a hook. */
import { expect, test } from 'vitest';
import { fixOf, runnerOfPlan } from './plan-runners.ts';
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

test.each<[string, string | undefined, string]>([
  ['autopilot', undefined, 'delete the Plan and apply it again'],
  ['autopilot', 'id1@2026-11-20T08:00:00Z', '--run id1@2026-11-20T08:00:00Z --reason'],
  ['autopilot', "it's mine", "--run 'it'\\''s mine' --reason"],
  ['kubeadm', 'id1', 'run `refit kubeadm apply` again'],
])('a plan of %s that rolls run %j back', (dialect, rollsBackRun, again) => {
  const runner = runnerOfPlan({ dialect, name: 'autopilot', rollsBackRun });
  expect(runner.again).toContain(again);
  expect(runner.startOver).toContain(again);
});

test('an edited Plan that goes back: the record says where to go', () => {
  const plan = { dialect: 'autopilot', name: 'autopilot', phase: 'edited', stages: [] };
  expect(fixOf({ ...plan, rollsBackRun: 'id1' } as unknown as PlanView)).toBe(
    'The edit is not carried out, because the plan had ended. To go back as recorded: run refit rollback autopilot --run id1 --reason TEXT, which replaces this Plan by another one.',
  );
});
