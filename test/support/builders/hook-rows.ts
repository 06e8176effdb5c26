/** The answers of the gate and the verifier of hooks, as rows for the table of all gates. */

import { hookRunOf, planHookRuns } from '../../../src/engine/gates/hook-runs.ts';
import { hooksPossible } from '../../../src/engine/gates/hooks-possible.ts';
import {
  hooksAfter,
  hooksAfterDrain,
  hooksBefore,
  hooksBeforeRestart,
} from '../../../src/engine/gates/hooks-succeeded.ts';
import { planHooksBefore } from '../../../src/engine/gates/plan-hooks.ts';
import type { Gate, GateInput } from '../../../src/engine/gates/types.ts';
import { answered, UNASKED } from '../../../src/engine/model/asked.ts';
import type { TargetFacts } from '../../../src/engine/model/facts.ts';
import type { DrainPolicy } from '../../../src/engine/policy/rollout-policy.ts';
import type { Hook, HookMoment, HookState } from '../../../src/hooks/rules.ts';
import { T0 } from '../clock/times.ts';
import { input, resting } from './gate-inputs.ts';
import { buildHook } from './hooks.ts';
import { withParts } from './parts.ts';
import { buildPolicy } from './rollout-policies.ts';

const hook = (when: HookMoment): Hook => buildHook('backup', when);

/** Returns the input with a policy that has one hook, whose run is in this state. */
function given(of: GateInput, when: HookMoment, state: HookState): GateInput {
  const { stage, target } = of;
  const { id } = hookRunOf({ snapshot: of, stage, target }, hook(when));
  const policy = buildPolicy({ name: 'careful', hooks: [hook(when)] });
  const found = { id, hook: 'backup', target: target.name, since: T0 };
  return withParts(of, {
    policy,
    outside: { hooks: [{ ...found, state, message: 'Job hooks/x runs' }] },
  });
}

/** Returns the input with a policy that has one hook before the plan, whose run is in this state. */
function ofPlan(state: HookState, more: Partial<Hook> = {}): GateInput {
  const policy = buildPolicy({ name: 'careful', hooks: [{ ...hook('beforePlan'), ...more }] });
  const found = planHookRuns(START, policy, 'beforePlan').map(({ id }) => ({ id, hook: 'backup' }));
  const known = found.map((each) => ({ ...each, since: T0, state, message: 'Job hooks/x runs' }));
  return withParts(START, { policy, outside: { hooks: known } });
}

const NAME = 'the hook backup of UpgradePolicy careful';
const RUNS = `wait HookRunning: ${NAME} must succeed for n1: Job hooks/x runs`;
const FAILED = `stop HookFailed: n1: ${NAME} failed: Job hooks/x runs`;
const START = input('worker');
const DONE = resting(undefined, T0);

const NODE = { name: 'n1', unschedulable: true, cordonOwner: undefined, taintOwner: undefined };
const DRAINED = input('worker', { node: NODE, drainDelegation: answered(true) });

/** Returns the input with changes to the drain of the policy. */
function draining(of: GateInput, drain: Partial<DrainPolicy>): GateInput {
  return { ...of, policy: { ...of.policy, drain: { ...of.policy.drain, ...drain } } };
}

/** Returns the input of a node that has not started, with a policy that has one hook. */
function beforeStart(
  when: HookMoment,
  facts: Partial<TargetFacts>,
  drain: Partial<DrainPolicy> = {},
): GateInput {
  const of = input('worker', { node: NODE, ...facts });
  const policy = buildPolicy({ name: 'careful', hooks: [hook(when)] });
  return draining({ ...of, policy }, drain);
}

function ignored(of: GateInput): GateInput {
  const hooks = (of.policy.hooks ?? []).map((each) => ({ ...each, ignoresFailure: true }));
  return { ...of, policy: { ...of.policy, hooks } };
}

const impossible = (why: string): string =>
  `wait HookImpossible: ${NAME} cannot run between the drain and the restart: ${why}, and does not wait for the leader`;
const ASKED = 'wait DrainDelegationUnknown: asking whether n1 delegates its drain';
const BY_ITSELF = impossible('n1 drains itself');
const BY_WORK = impossible('the work on n1 drains its node itself');
const AFTER = given(DRAINED, 'afterDrain', 'running');
const RESTART = given(DRAINED, 'beforeRestart', 'running');

const BETWEEN: readonly [Gate, string, GateInput, string][] = [
  [hooksAfterDrain, 'succeeded', given(DRAINED, 'afterDrain', 'succeeded'), 'pass'],
  [hooksAfterDrain, 'running', AFTER, RUNS],
  [hooksAfterDrain, 'failed', given(DRAINED, 'afterDrain', 'failed'), FAILED],
  [hooksAfterDrain, 'no drain', draining(AFTER, { enabled: false }), 'pass'],
  [hooksAfterDrain, 'only a cordon', draining(AFTER, { cordonOnly: true }), 'pass'],
  [hooksAfterDrain, 'no Node', given(START, 'afterDrain', 'running'), 'pass'],
  [hooksAfterDrain, 'of another moment', RESTART, 'pass'],
  [hooksBeforeRestart, 'succeeded', given(DRAINED, 'beforeRestart', 'succeeded'), 'pass'],
  [hooksBeforeRestart, 'running', RESTART, RUNS],
  [hooksBeforeRestart, 'failed', given(DRAINED, 'beforeRestart', 'failed'), FAILED],
  [hooksBeforeRestart, 'no drain', draining(RESTART, { enabled: false }), RUNS],
  [hooksBefore, 'restart, held', RESTART, 'pass'],
  [hooksBefore, 'restart, not held', draining(RESTART, { unheld: 'withoutDrain' }), RUNS],
  [hooksBefore, 'restart, drained by work', draining(RESTART, { unheld: 'withDrain' }), 'pass'],
  [
    hooksPossible,
    'another moment',
    beforeStart('beforeDrain', { drainDelegation: answered(false) }),
    'pass',
  ],
  [hooksPossible, 'not asked', beforeStart('afterDrain', { drainDelegation: UNASKED }), ASKED],
  [
    hooksPossible,
    'leader drains',
    beforeStart('afterDrain', { drainDelegation: answered(true) }),
    'pass',
  ],
  [
    hooksPossible,
    'by itself',
    beforeStart('afterDrain', { drainDelegation: answered(false) }),
    BY_ITSELF,
  ],
  [
    hooksPossible,
    'restart',
    beforeStart('beforeRestart', { drainDelegation: answered(false) }),
    BY_ITSELF,
  ],
  [
    hooksPossible,
    'by itself, ignored',
    ignored(beforeStart('afterDrain', { drainDelegation: answered(false) })),
    'pass',
  ],
  [hooksPossible, 'no Node', beforeStart('afterDrain', { node: undefined }), 'pass'],
  [hooksPossible, 'by work', beforeStart('afterDrain', {}, { unheld: 'withDrain' }), BY_WORK],
  [hooksPossible, 'no drain', beforeStart('beforeRestart', {}, { unheld: 'withoutDrain' }), 'pass'],
];

export const HOOK_ROWS: readonly [Gate, string, GateInput, string][] = [
  ...BETWEEN,
  [hooksBefore, 'succeeded', given(START, 'beforeDrain', 'succeeded'), 'pass'],
  [hooksBefore, 'running', given(START, 'beforeDrain', 'running'), RUNS],
  [hooksBefore, 'failed', given(START, 'beforeDrain', 'failed'), FAILED],
  [hooksAfter, 'succeeded', given(DONE, 'afterVerified', 'succeeded'), 'pass'],
  [hooksAfter, 'running', given(DONE, 'afterVerified', 'running'), RUNS],
  [hooksAfter, 'failed', given(DONE, 'afterVerified', 'failed'), FAILED],
  [planHooksBefore, 'succeeded', ofPlan('succeeded'), 'pass'],
  [
    planHooksBefore,
    'running',
    ofPlan('running'),
    `wait HookRunning: ${NAME} must succeed before the plan starts: Job hooks/x runs`,
  ],
  [
    planHooksBefore,
    'failed',
    ofPlan('failed'),
    `wait PlanHookFailed: no node starts, because ${NAME} failed: Job hooks/x runs`,
  ],
  [planHooksBefore, 'failed, and ignored', ofPlan('failed', { ignoresFailure: true }), 'pass'],
  [planHooksBefore, 'failed after the start', { ...ofPlan('failed'), isBegun: true }, 'pass'],
];
