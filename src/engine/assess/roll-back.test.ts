/**
 * Tests when the leader rolls a failed run back by itself, and when a policy that requests a roll-back has the same
 * effect as Stop.
 */

import { expect, test } from 'vitest';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPlan } from '../../../test/support/builders/plans.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, T0 } from '../../../test/support/clock/times.ts';
import { readPlan } from '../explain/plan-reading.ts';
import { rollBackSentence } from '../explain/roll-back.ts';
import { answered, UNASKED } from '../model/asked.ts';
import { type Controls, NO_CONTROLS } from '../model/controls.ts';
import type { PossibleRollBack } from '../model/possible-roll-back.ts';
import { because } from '../model/reasons.ts';
import type { Rollout } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { commandsFor } from '../turn/commands.ts';
import { assess } from './assess.ts';
import { lastEndOf } from './ended.ts';
import { rollBackVerdict } from './roll-back.ts';

const POLICY: Partial<RolloutPolicy> = { rollsBackOnFailure: true, name: 'safe' };
const BACK = { plan: buildPlan(), names: ['w1'] };
const LATER = { awaits: 'w1 still shows v1', leftMs: 5000 };
const READ = answered({ plan: '', place: '', exists: true, approvals: [], accepted: [] });
const TARGETS = [buildTarget('w1', 'done'), buildTarget('w2', 'failed'), buildTarget('w3')];

interface Row {
  readonly rollout?: Partial<Rollout>;
  readonly policy?: Partial<RolloutPolicy>;
  readonly controls?: Partial<Controls>;
  readonly decisions?: Snapshot['plan']['decisions'];
  readonly rollBack?: PossibleRollBack;
}

function sceneOf({ rollout, policy, controls, decisions = READ, rollBack = BACK }: Row) {
  const made = buildRollout([buildStage('worker', TARGETS)]);
  const snapshot = withParts(buildSnapshot({ ...made, phase: 'failed', ...rollout }), {
    plan: { controls: { ...NO_CONTROLS, ...controls }, decisions, rollBack },
  });
  return { snapshot, policy: buildPolicy({ ...POLICY, ...policy }) };
}

test.each<[string, Row, string | undefined]>([
  ['a used-up budget', {}, 'due'],
  ['another policy', { policy: { rollsBackOnFailure: false } }, undefined],
  ['a plan that goes on', { rollout: { phase: 'running' } }, 'ahead'],
  ['a plan that is done', { rollout: { phase: 'done' } }, undefined],
  ['an end within the budget', { policy: { maxFailures: 1 } }, undefined],
  ['an abort', { controls: { abort: 'no' } }, undefined],
  [
    'an abort whose annotation is gone',
    { rollout: { reason: because('Aborted', 'x') } },
    undefined,
  ],
  ['an edit after the end', { rollout: { edit: 'w4 is listed now' } }, undefined],
  ['a pause of the plan', { controls: { paused: true } }, 'paused'],
  ['a pause of the policy', { policy: { paused: true } }, 'paused'],
  ['a NodeRollout that was not read', { decisions: UNASKED }, 'ask'],
  ['an end that is not recorded yet', { rollBack: 'unrecorded' }, 'wait'],
  ['a node whose version is not known yet', { rollBack: LATER }, 'delayed'],
  ['a way back that is closed', { rollBack: { obstacle: 'closed' } }, 'refused'],
  ['another dialect', { rollBack: { byHand: 'by hand' } }, 'refused'],
  [
    'another dialect, before a failure',
    { rollout: { phase: 'running' }, rollBack: { byHand: 'x' } },
    'refused',
  ],
  ['a roll-back that failed', { rollout: { rollsBack: 'uid/id0' } }, 'refused'],
])('whether the leader rolls a plan back: %s', (_name, row, expected) => {
  const { snapshot, policy } = sceneOf(row);
  expect(rollBackVerdict(snapshot, policy, T0)?.kind).toBe(expected);
});

test.each<[Row, string[]]>([
  [{}, ['roll-back']],
  [{ decisions: UNASKED }, ['probe']],
  [{ rollBack: 'unrecorded' }, ['wake']],
  [{ rollBack: LATER }, ['wake']],
  [{ rollBack: { obstacle: 'closed' } }, []],
])('the kinds of the commands for a roll-back that changes as %j', (row, kinds) => {
  const { snapshot, policy } = sceneOf(row);
  const commands = commandsFor(assess(snapshot, policy, T0));
  expect(commands.map(({ kind }) => kind).filter((kind) => kind !== 'hooks')).toEqual(kinds);
});

test.each<[Row, string]>([
  [
    {},
    'Refit rolls the nodes back now: the policy safe: 1 node failed (w2), more than failureBudget 0 of UpgradePolicy safe allows; run run-1 is rolled back on w1',
  ],
  [
    { rollout: { phase: 'running' } },
    'UpgradePolicy safe: if failures use up a budget, the plan stops and Refit rolls its nodes back',
  ],
  [
    { controls: { paused: true } },
    'UpgradePolicy safe: Refit rolls the nodes back once nothing is paused; refit abort prevents that',
  ],
  [
    { rollBack: LATER },
    'UpgradePolicy safe: Refit rolls the nodes back once it knows what each of them runs: w1 still shows v1',
  ],
  [
    { rollBack: { obstacle: 'it is closed' } },
    'onFailure: RollBack of UpgradePolicy safe acts as Stop: it is closed',
  ],
  [
    { rollout: { rollsBack: 'uid/id0', rollsBackReason: 'the policy safe: w2' } },
    'this plan rolls run id0 back, says the policy safe: w2; Refit does not roll back a roll-back',
  ],
])('what people read about %j', (row, expected) => {
  const { snapshot, policy } = sceneOf(row);
  expect(rollBackSentence(readPlan(assess(snapshot, policy, T0), { waits: [] }))).toBe(expected);
});

test.each([
  [5_000, 1000],
  [60_000, 6000],
  [24 * HOUR, 60_000],
])(
  '%i ms after an end that nothing records, the leader looks again after %i ms',
  (ago, afterMs) => {
    const { snapshot, policy } = sceneOf({ rollBack: 'unrecorded' });
    const ended = lastEndOf(snapshot);
    const commands = commandsFor(assess(snapshot, policy, ended + ago));
    expect(commands).toContainEqual({ kind: 'wake', afterMs });
  },
);

test('a roll-back that the leader would refuse is refused with the words of the leader', () => {
  const { snapshot, policy } = sceneOf({});
  const problem = because('Downgrade', 'w1 would go down', { versions: ['v1.36.0'] });
  const back = buildSnapshot({ ...snapshot.rollout, phase: 'new', problems: [problem] });
  expect(
    rollBackVerdict(withParts(snapshot, { plan: { ofRollBack: () => back } }), policy, T0),
  ).toEqual({
    kind: 'refused',
    reason: because(
      'RollBackRefused',
      'onFailure: RollBack of UpgradePolicy safe acts as Stop: the leader would refuse the plan that goes back: w1 would go down',
    ),
  });
});
