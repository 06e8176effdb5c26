/**
 * Proves that a rollout whose UpgradePolicy has a field that this release cannot read does nothing that the field could
 * forbid.
 */

import { expect, test } from 'vitest';
import { decide } from '../../../test/support/builders/decisions.ts';
import { buildUpgradePolicy } from '../../../test/support/builders/policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, T0 } from '../../../test/support/clock/times.ts';
import type { UpgradePolicySpec } from '../../api/refit/upgrade-policy.ts';
import { answered } from '../model/asked.ts';
import type { TargetFacts } from '../model/facts.ts';
import type { RecordedState } from '../model/rollout.ts';
import { readPolicy } from './read-policy.ts';

const SPEC: UpgradePolicySpec = {
  failureBudget: 1,
  drain: { deleteEmptyDirData: false, onDeadline: 'Skip' },
};
const before = readPolicy(buildUpgradePolicy('nightly', SPEC));
const now = readPolicy(
  buildUpgradePolicy('nightly', { ...SPEC, ...(JSON.parse('{"canary":3}') as object) }),
);

function decisionOn(
  policy: typeof now,
  states: RecordedState[],
  facts: Partial<TargetFacts> = {},
  at = T0,
) {
  const stage = buildStage(
    'worker',
    states.map((state, index) => buildTarget(`w${index + 1}`, state)),
  );
  return decide(buildSnapshot(buildRollout([stage]), { w1: facts }), policy, at);
}

const asking = {
  kind: 'working',
  step: 'Cordoning',
  waitsFor: 'drain',
  attempt: later(0),
  since: later(0),
} as const;
const node = {
  name: 'w1',
  unschedulable: true,
  cordonOwner: `plan-uid/${later(0)}/Plan`,
  taintOwner: undefined,
};
const drain = { kind: 'draining', since: T0, left: 1, options: before.drain.options } as const;
const drained = {
  observation: { ...asking, part: 'drain' },
  node,
  drain,
  drainDelegation: answered(true),
} as const;

test('a drain does not go on with options that the policy did not have', () => {
  expect(decisionOn(before, ['intended'], drained).nodeActions).toEqual([]);
  const { nodeActions, waits } = decisionOn(now, ['intended'], drained, T0 + 2 * HOUR);
  expect(nodeActions).toEqual([]);
  expect(waits[0]?.reason.message).toBe(
    'the drain under UpgradePolicy nightly, which cannot be read, is paused: w1 is not drained',
  );
});

test('a failure within the budget of before ends nothing', () => {
  expect(decisionOn(now, ['failed', 'pending']).record?.phase).not.toBe('failed');
});
