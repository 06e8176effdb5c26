/** What the gate and the verifier of hooks say, as rows for the table of all gates. */
import { hookRunOf } from '../../../src/engine/gates/hook-runs.ts';
import { hooksAfter, hooksBefore } from '../../../src/engine/gates/hooks-succeeded.ts';
import type { Gate, GateInput } from '../../../src/engine/gates/types.ts';
import type { Hook, HookMoment, HookState } from '../../../src/hooks/rules.ts';
import { T0 } from '../clock/times.ts';
import { input, resting } from './gate-inputs.ts';
import { buildPolicy } from './rollout-policies.ts';

function hook(when: HookMoment): Hook {
  const template = { spec: { containers: [{ name: 'c', image: 'i' }] } };
  const job = { kind: 'job', namespace: 'hooks', template, pinToNode: false, retries: 0 } as const;
  return { name: 'backup', when, action: job, timeoutMs: 60_000 };
}

/** Returns the input with a policy that has one hook, whose run is in this state. */
function given(of: GateInput, when: HookMoment, state: HookState): GateInput {
  const { rollout, controls, stage, target, facts } = of;
  const snapshot = { rollout, controls, facts: new Map([[target.key, facts]]) };
  const { id } = hookRunOf({ snapshot, stage, target }, hook(when));
  const policy = buildPolicy({ name: 'careful', hooks: [hook(when)] });
  const found = { id, hook: 'backup', target: target.name, since: T0 };
  return { ...of, policy, hooks: [{ ...found, state, message: 'Job hooks/x runs' }] };
}

const NAME = 'the hook backup of UpgradePolicy careful';
const RUNS = `wait HookRunning: ${NAME} must succeed for n1: Job hooks/x runs`;
const FAILED = `stop HookFailed: n1: ${NAME} failed: Job hooks/x runs`;
const START = input('worker');
const DONE = resting(undefined, T0);

export const HOOK_ROWS: readonly [Gate, string, GateInput, string][] = [
  [hooksBefore, 'succeeded', given(START, 'beforeDrain', 'succeeded'), 'pass'],
  [hooksBefore, 'running', given(START, 'beforeDrain', 'running'), RUNS],
  [hooksBefore, 'failed', given(START, 'beforeDrain', 'failed'), FAILED],
  [hooksAfter, 'succeeded', given(DONE, 'afterVerified', 'succeeded'), 'pass'],
  [hooksAfter, 'running', given(DONE, 'afterVerified', 'running'), RUNS],
  [hooksAfter, 'failed', given(DONE, 'afterVerified', 'failed'), FAILED],
];
