/**
 * Tests that a roll-back never moves a controller below the version of a worker, even if the plan does not list that
 * worker.
 */

import { expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSignal, type OriginalSignal } from '../../../test/support/builders/signals.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import type { Rollout } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { gateInput, type Verdict } from './types.ts';
import { workersFirst } from './workers-first.ts';

const OLD = 'v1.36.1';
const NEW = 'v1.36.2';

function verdictOn(
  signal: OriginalSignal,
  way: Partial<Rollout> = { rollsBack: 'plan-1/run-1' },
  policy: Partial<RolloutPolicy> = {},
): Verdict {
  const target = buildTarget('c1');
  const controllers = buildStage('controller', [target], { version: OLD });
  const fleet = [buildNode('c1'), buildNode('w1', { annotations: buildSignal(signal) })];
  const snapshot = withParts(buildSnapshot({ ...buildRollout([controllers]), ...way }), {
    cluster: { fleet },
  });
  const context = { snapshot, stage: controllers, target, now: T0 };
  return workersFirst.evaluate(gateInput({ ...context, policy: buildPolicy(policy) }, 1));
}

const INSTALLED = { status: 'Completed', command: { version: NEW } };

test('a worker that reported a newer version, and that the plan does not list, ends the plan', () => {
  expect(verdictOn(INSTALLED)).toEqual({
    kind: 'stop',
    reason: {
      code: 'KubeletAhead',
      message: `w1 reported that ${NEW} is installed, which is newer than ${OLD}, and this plan does not roll the node back. Choose one: run refit rollback again, with --run and the run that installed ${NEW}; or downgrade w1 by hand and remove its signal; or set \`versions.allow: [KubeletAhead]\` in the policy, if the node may keep the newer version`,
      details: { versions: [OLD] },
    },
    ofPlan: true,
  });
});

test.each<[string, Parameters<typeof verdictOn>]>([
  ['the plan goes forward', [INSTALLED, {}]],
  ['a policy allows it', [INSTALLED, undefined, { allow: new Set(['KubeletAhead']) }]],
  ['the worker has the same version', [{ ...INSTALLED, command: { version: OLD } }]],
  ['the worker failed', [{ ...INSTALLED, status: 'Failed' }]],
  [
    'the signal brought images',
    [{ ...INSTALLED, command: { kind: 'airgapupdate', version: NEW } }],
  ],
])('controllers go back where %s', (_, given) => {
  expect(verdictOn(...given)).toEqual({ kind: 'pass' });
});

test('controllers wait for a worker of the plan that has failed, whether the stage or the rollout goes back', () => {
  const target = buildTarget('c1');
  const workers = buildStage('worker', [buildTarget('w1', 'failed')]);
  const controllers = buildStage('controller', [target]);
  const back = { ...controllers, goesBack: true };
  const forward = buildRollout([workers, controllers]);
  const codeIn = (rollout: Rollout, stage = controllers): string => {
    const context = { snapshot: buildSnapshot(rollout), stage, target, now: T0 };
    const verdict = workersFirst.evaluate(gateInput({ ...context, policy: buildPolicy() }, 1));
    return verdict.kind === 'pass' ? 'pass' : `${verdict.kind} ${verdict.reason.code}`;
  };
  expect(codeIn(forward)).toBe('pass');
  expect(codeIn({ ...forward, rollsBack: 'plan-1/run-1' })).toBe('wait KubeletAhead');
  expect(codeIn(buildRollout([workers, back]), back)).toBe('wait KubeletAhead');
});

test('controllers say how many workers did not go back, and what ends the wait', () => {
  const target = buildTarget('c1');
  const controllers = buildStage('controller', [target], { version: OLD });
  const waitWith = (...states: readonly ('pending' | 'failed' | 'done')[]): Verdict => {
    const workers = states.map((state, index) => buildTarget(`w${index + 1}`, state));
    const stages = [
      buildStage('controller', ['c0'], { command: 1 }),
      buildStage('worker', workers),
      controllers,
    ];
    const snapshot = buildSnapshot({ ...buildRollout(stages), rollsBack: 'plan-1/run-1' });
    const context = { snapshot, stage: controllers, target, now: T0 };
    return workersFirst.evaluate(gateInput({ ...context, policy: buildPolicy() }, 1));
  };
  const waiting = (message: string): object => ({
    kind: 'wait',
    reason: {
      code: 'KubeletAhead',
      message: `${message} did not go back, and controllers go back after all workers`,
      details: { versions: [OLD] },
    },
    ends: 'those workers have gone back; for a failed one run refit retry NODE; or the plan is aborted and run again',
  });
  expect(waitWith('done', 'failed')).toEqual(waiting('w2'));
  expect(waitWith('pending', 'failed', 'failed')).toEqual(waiting('w1 and 2 more'));
  expect(waitWith('done')).toEqual({ kind: 'pass' });
});

test('only a plan that goes back may be refused for a newer worker', () => {
  const stages = [buildStage('worker', ['w1'], { goesBack: true }), buildStage('worker', ['w2'])];
  const mayRefuse = (rollout: Rollout) => workersFirst.mayRefusePlan?.(buildSnapshot(rollout));
  expect(mayRefuse(buildRollout(stages))).toBe(true);
  expect(mayRefuse(buildRollout(stages.slice(1)))).toBe(false);
});
