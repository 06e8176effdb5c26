/** Proves that a turn that was written as JSON and read back has the same assessment and the same commands. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { assess } from '../../src/engine/assess/assess.ts';
import { explainToPeople } from '../../src/engine/explain/explain.ts';
import { withStages } from '../../src/engine/model/rollout.ts';
import { commandsFor } from '../../src/engine/turn/commands.ts';
import { arbitrarySituation } from './builders/arbitrary-snapshots.ts';
import { buildPolicy } from './builders/rollout-policies.ts';
import { buildRollout } from './builders/rollouts.ts';
import { buildSnapshot } from './builders/snapshots.ts';
import { buildStage } from './builders/stages.ts';
import { T0 } from './clock/times.ts';
import { type RecordedTurn, turnFromJson, turnToJson } from './turn-json.ts';

/** All that is made of a turn. */
function outcomeOf({ snapshot, policy, now }: RecordedTurn) {
  const assessment = assess(snapshot, policy, now);
  const { stage, isStopping, isOverBudget, openSlots } = assessment;
  return {
    fields: { stage, isStopping, isOverBudget, openSlots },
    evaluations: withStages(snapshot.rollout).map((each) => assessment.of(each.stage, each.target)),
    commands: commandsFor(assessment),
    explanation: explainToPeople(assessment),
  };
}

test('any turn that is read back has the same assessment, commands and explanation', () => {
  const property = fc.property(arbitrarySituation(), (turn) => {
    const again = turnFromJson(turnToJson(turn));
    expect(outcomeOf(again)).toEqual(outcomeOf(turn));
  });
  fc.assert(property, { numRuns: 300 });
});

test('what JSON lacks comes back: maps, sets and numbers without end', () => {
  const policy = { ...buildPolicy(), targetDeadlineMs: Number.POSITIVE_INFINITY };
  const snapshot = {
    ...buildSnapshot(buildRollout([buildStage('worker', ['w1', 'w2'])])),
    observable: new Set(['w2', 'of another plan']),
  };
  const again = turnFromJson(turnToJson({ snapshot, policy, now: T0 }));
  expect(again.policy).toEqual(policy);
  expect(again.snapshot.controls).toEqual(snapshot.controls);
  expect(['w1', 'w2'].map((name) => again.snapshot.observable?.has(name))).toEqual([false, true]);
});
