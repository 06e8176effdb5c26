/**
 * Tests which gates release the intent of a target whose Node is claimed. A claim makes other plans wait, so most gates
 * release the intent of a target that has to wait.
 */

import { expect, test } from 'vitest';
import { decide } from '../../../test/support/builders/decisions.ts';
import { type SnapshotChanges, withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import type { TargetFacts } from '../model/facts.ts';
import { because } from '../model/reasons.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

const REFUSAL = {
  reason: because('TargetRefused', 'w1: refused by a webhook'),
  recheckMs: 1000,
};
const LEASE = { tool: 'DisruptionLease', others: [], isOurs: false } as const;
const LEASING: Partial<RolloutPolicy> = { coordinate: ['DisruptionLease'] };

/** Returns the state of the target after a decision in which its Node is claimed for the plan. */
function stateOfClaimed(
  facts: Partial<TargetFacts>,
  policy: Partial<RolloutPolicy> = {},
  more: SnapshotChanges = {},
): string | undefined {
  const stage = buildStage('worker', [buildTarget('w1', 'intended')]);
  const node = {
    name: 'w1',
    unschedulable: false,
    claim: 'plan',
    cordonOwner: undefined,
    taintOwner: undefined,
  };
  const built = buildSnapshot(buildRollout([stage], { phase: 'running' }), {
    w1: { ...facts, node },
  });
  const snapshot = withParts(built, { plan: { claim: 'plan' } }, more);
  const { stages } = decide(snapshot, buildPolicy(policy), T0).record ?? snapshot.rollout;
  return stages[0]?.targets[0]?.state;
}

test('a refused write keeps the intent', () => {
  expect(stateOfClaimed({ refusal: REFUSAL })).toBe('intended');
});

test.each([
  ['is not taken yet', LEASE],
  ['cannot be taken', { ...LEASE, problem: 'Forbidden' }],
])(
  'a lock that %s keeps the intent, because only an intent makes the leader take it',
  (_name, lock) => {
    expect(stateOfClaimed({}, LEASING, { outside: { locks: [lock] } })).toBe('intended');
  },
);

test('a lock of somebody else gives the intent back', () => {
  const other = { tool: 'DisruptionLease', message: 'somebody holds it', ends: 'x' } as const;
  const locks = [{ ...LEASE, others: [other] }];
  expect(stateOfClaimed({}, LEASING, { outside: { locks } })).toBe('pending');
});
