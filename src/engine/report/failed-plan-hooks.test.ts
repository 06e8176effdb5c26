/** Tests that each failure of a hook of the whole plan is reported once. */
import { expect, test } from 'vitest';
import { buildHook } from '../../../test/support/builders/hooks.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import type { HookState } from '../../hooks/rules.ts';
import { type Assessment, assess } from '../assess/assess.ts';
import { planHookRuns } from '../gates/hook-runs.ts';
import { because } from '../model/reasons.ts';
import { planHookFailures, planHookMemory } from './failed-plan-hooks.ts';

const POLICY = buildPolicy({
  name: 'careful',
  hooks: [
    buildHook('backup', 'beforePlan'),
    buildHook('drain', 'beforeDrain'),
    buildHook('report', 'afterPlan'),
  ],
});
const SNAPSHOT = buildSnapshot(buildRollout([buildStage('worker', ['w1'])]));
const RUNS = planHookRuns(SNAPSHOT, POLICY, 'beforePlan', 'beforeDrain', 'afterPlan');

/** Returns the assessment of a plan whose hooks have these states. A hook without a state has not run. */
function given(states: Readonly<Record<string, HookState>>): Assessment {
  const hooks = RUNS.flatMap(({ id, hook: { name } }) => {
    const state = states[name];
    return state ? [{ id, hook: name, state, message: `it is ${state}`, since: T0 }] : [];
  });
  return assess(withParts(SNAPSHOT, { outside: { hooks } }), POLICY, T0);
}

const failureOf = (name: string) =>
  because('PlanHookFailed', `the hook ${name} of UpgradePolicy careful failed: it is failed`, {
    policy: 'careful',
    hook: name,
  });

test('a failure is told for each hook of the whole plan that has failed, and for no other hook', () => {
  const reasons = planHookFailures(
    given({ backup: 'failed', drain: 'failed', report: 'failed' }),
  ).map(({ reason }) => reason);
  expect(reasons).toEqual([failureOf('backup'), failureOf('report')]);
  expect(planHookFailures(given({ backup: 'succeeded', report: 'running' }))).toEqual([]);
  expect(planHookFailures(assess(SNAPSHOT, POLICY, T0))).toEqual([]);
});

test('each failure is told once, and again if the hook failed again or the plan was forgotten', () => {
  const memory = planHookMemory();
  expect(memory.at('plan', given({ backup: 'failed' }))).toEqual([failureOf('backup')]);
  expect(memory.at('plan', given({ backup: 'failed' }))).toEqual([]);
  expect(memory.at('another', given({ backup: 'failed' }))).toEqual([failureOf('backup')]);
  expect(memory.at('plan', given({ backup: 'failed', report: 'failed' }))).toEqual([
    failureOf('report'),
  ]);
  expect(memory.at('plan', given({ backup: 'running' }))).toEqual([]);
  expect(memory.at('plan', given({ backup: 'failed' }))).toEqual([failureOf('backup')]);
  memory.forget('plan');
  expect(memory.at('plan', given({ backup: 'failed' }))).toEqual([failureOf('backup')]);
});
