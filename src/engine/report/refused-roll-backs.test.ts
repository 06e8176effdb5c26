/** Tests that an Event reports once why the leader does not roll a failed run back. */
import { expect, test } from 'vitest';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPlan } from '../../../test/support/builders/plans.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import { type Assessment, assess } from '../assess/assess.ts';
import { answered } from '../model/asked.ts';
import type { PossibleRollBack } from '../model/possible-roll-back.ts';
import { because } from '../model/reasons.ts';
import type { RolloutPhase } from '../model/rollout.ts';
import { refusedRollBackMemory } from './refused-roll-backs.ts';

const POLICY = buildPolicy({ rollsBackOnFailure: true, name: 'safe' });
const TARGETS = [buildTarget('w1', 'done'), buildTarget('w2', 'failed'), buildTarget('w3')];
const READ = answered({ plan: '', place: '', exists: true, approvals: [], accepted: [] });
const POSSIBLE = { plan: buildPlan(), names: ['w1'] };

/** Returns the assessment of a plan that has failed, `ms` after the beginning. */
function given(rollBack: PossibleRollBack, ms = 0, phase: RolloutPhase = 'failed'): Assessment {
  const rollout = buildRollout([buildStage('worker', TARGETS)], { phase });
  const snapshot = withParts(buildSnapshot(rollout), { plan: { decisions: READ, rollBack } });
  return assess(snapshot, POLICY, T0 + ms);
}

const refusal = (why: string) =>
  because('RollBackRefused', `onFailure: RollBack of UpgradePolicy safe ${why}`);
const CLOSED = refusal('acts as Stop: it is closed');
const UNRECORDED = refusal(
  'has the same effect as Stop until the NodeRollout shows that run run-1 has ended, and which versions its nodes ran before',
);

test('a refused roll-back is told once, and again for another obstacle or after it was possible', () => {
  const memory = refusedRollBackMemory();
  const closed = given({ obstacle: 'it is closed' });
  expect(memory.at('plan', closed)).toEqual(CLOSED);
  expect(memory.at('plan', closed)).toBeUndefined();
  expect(memory.at('another', closed)).toEqual(CLOSED);
  expect(memory.at('plan', given({ obstacle: 'w1 is gone' }))).toEqual(
    refusal('acts as Stop: w1 is gone'),
  );
  expect(memory.at('plan', given(POSSIBLE))).toBeUndefined();
  expect(memory.at('plan', given({ obstacle: 'w1 is gone' }))).toEqual(
    refusal('acts as Stop: w1 is gone'),
  );
});

test('a plan that runs has no refused roll-back yet', () => {
  const memory = refusedRollBackMemory();
  expect(memory.at('plan', given({ byHand: 'x' }, 0, 'running'))).toBeUndefined();
  expect(memory.at('plan', given(POSSIBLE))).toBeUndefined();
});

test('an end that nothing records is told after a minute, and the minute begins anew once it is recorded', () => {
  const memory = refusedRollBackMemory();
  const at = (ms: number, rollBack: PossibleRollBack = 'unrecorded') =>
    memory.at('plan', given(rollBack, ms));
  expect(at(0)).toBeUndefined();
  expect(at(59_999)).toBeUndefined();
  expect(at(60_000)).toEqual(UNRECORDED);
  expect(at(61_000)).toBeUndefined();
  expect(at(62_000, POSSIBLE)).toBeUndefined();
  expect(at(63_000)).toBeUndefined();
  expect(at(122_999)).toBeUndefined();
  expect(at(123_000)).toEqual(UNRECORDED);
});

test('a plan that was deleted and applied again is told of anew', () => {
  const memory = refusedRollBackMemory();
  const at = (ms: number) => memory.at('plan', given('unrecorded', ms));
  at(0);
  expect(at(60_000)).toEqual(UNRECORDED);
  memory.forget('plan');
  expect(at(61_000)).toBeUndefined();
  expect(at(121_000)).toEqual(UNRECORDED);
  memory.forget('plan');
  const closed = given({ obstacle: 'it is closed' });
  expect(memory.at('plan', closed)).toEqual(CLOSED);
  memory.forget('plan');
  expect(memory.at('plan', closed)).toEqual(CLOSED);
});
