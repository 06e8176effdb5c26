/** Tests that a plan starts no target while one of its hosts is known to be unable to run the version of the plan. */
import { expect, test } from 'vitest';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import type { TargetFacts } from '../model/facts.ts';
import type { Target } from '../model/rollout.ts';
import { hostsFit } from './hosts-fit.ts';
import { gateInput } from './types.ts';

const UNFIT = { unfit: 'the host is too old: renew it' };

function verdictOn(facts: Record<string, Partial<TargetFacts>>, first: Partial<Target> = {}) {
  const controllers = buildStage('controller', ['c1']);
  const workers = buildStage('worker', ['w1', 'w2', 'w3']);
  const target = { ...buildTarget('c1'), ...first };
  const snapshot = buildSnapshot(
    buildRollout([{ ...controllers, targets: [target] }, workers]),
    facts,
  );
  const context = { snapshot, stage: controllers, target, policy: buildPolicy(), now: T0 };
  return hostsFit.evaluate(gateInput(context, 1));
}

test('a host of a later stage holds the first one, too: all are named with what mends it', () => {
  expect(verdictOn({ w1: UNFIT, w3: UNFIT })).toEqual({
    kind: 'wait',
    reason: { code: 'HostUnfit', message: 'w1, w3: the host is too old: renew it' },
    ends: 'the agents there report that the problem is fixed, their annotations are removed because no agent runs there any more, or the plan leaves those nodes out',
  });
});

test('a host that runs the version already holds nothing', () => {
  expect(verdictOn({ w1: { ...UNFIT, isThere: true } })).toEqual({ kind: 'pass' });
  expect(verdictOn({})).toEqual({ kind: 'pass' });
});

test('once the plan has started each host refuses by itself', () => {
  expect(verdictOn({ w1: UNFIT }, { state: 'intended' })).toEqual({ kind: 'pass' });
});
