/** Proves how long `refit kubeadm apply` waits for the hooks after its plan, and what it prints about them. */
import { expect, test } from 'vitest';
import { buildPolicy } from '../../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../../test/support/builders/rollouts.ts';
import { buildStage } from '../../../../test/support/builders/stages.ts';
import { buildTablePlan, tableDialect } from '../../../../test/support/builders/table-dialect.ts';
import { buildTarget } from '../../../../test/support/builders/targets.ts';
import { FakeClock } from '../../../../test/support/clock/fake-clock.ts';
import { planHookRuns } from '../../../engine/gates/hook-runs.ts';
import { NO_CONTROLS } from '../../../engine/model/controls.ts';
import type { RolloutPhase } from '../../../engine/model/rollout.ts';
import type { Hook, HookState } from '../../../hooks/rules.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { rfc3339 } from '../../../util/clock.ts';
import { untilHooksEnded } from './until-hooks-ended.ts';

const MINUTE = 60_000;
const action = { kind: 'webhook', url: 'https://a.example', secretName: 's' } as const;
const hook = (name: string): Hook => ({ name, when: 'afterPlan', action, timeoutMs: MINUTE });

/**
 * Waits for a hook that changes to each state after the given number of minutes. Returns the minutes of the wait and
 * the printed text.
 */
async function waited(phase: RolloutPhase, states: readonly [number, HookState][]) {
  const clock = new FakeClock();
  const began = clock.monotonic();
  const target = buildTarget('w1', 'done', { since: rfc3339(clock.now()) });
  const rollout = buildRollout([buildStage('worker', [target])], { phase });
  const plan = { ...buildTablePlan({}), status: rollout };
  const policy = buildPolicy({ name: 'careful', hooks: [hook('tell')] });
  const [run] = planHookRuns({ rollout, plan: { controls: NO_CONTROLS } }, policy, 'afterPlan');
  const listAll = async ({ kind }: { readonly kind: string }): Promise<object> =>
    await Promise.resolve({ items: kind === 'Plan' ? [plan] : [], metadata: {} });
  const said: string[] = [];
  const session = {
    client: { listAll } as unknown as KubeClient,
    clock,
    output: { write: (text: string) => void said.push(text) },
    abort: new AbortController().signal,
  };
  const hooksOf = () => {
    const passed = (clock.monotonic() - began) / MINUTE;
    const [, state] = states.findLast(([minutes]) => minutes <= passed) ?? [];
    if (run === undefined || state === undefined) return [];
    return [{ id: run.id, hook: 'tell', state, message: `it is ${state}`, since: 0 }];
  };
  const controller = { dialects: [tableDialect], policyFor: () => policy, hooksOf };
  await clock.runUntil(untilHooksEnded(session, controller));
  return {
    minutes: Math.round(((clock.monotonic() - began) / MINUTE) * 10) / 10,
    said: said.join(''),
  };
}

const WAITING = 'The plan has ended. Waiting for the hook tell.\n';

test.each<[string, RolloutPhase, readonly [number, HookState][], number, string]>([
  [
    'succeeds',
    'done',
    [
      [0, 'running'],
      [0.5, 'succeeded'],
    ],
    0.5,
    WAITING,
  ],
  [
    'fails',
    'done',
    [[0.5, 'failed']],
    0.5,
    `${WAITING}the hook tell of UpgradePolicy careful failed: it is failed\n`,
  ],
  ['does not end', 'done', [[0, 'running']], 2, WAITING],
  ['is never begun', 'done', [], 2, WAITING],
  ['follows a plan that failed', 'failed', [], 0, ''],
])('a hook that %s', async (_what, phase, states, minutes, said) => {
  expect(await waited(phase, states)).toEqual({ minutes, said });
});
