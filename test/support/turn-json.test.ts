/** Proves that a turn that was written as JSON and read back has the same assessment and the same commands. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { arbitrarySituation } from './builders/arbitrary-snapshots.ts';
import { buildPolicy } from './builders/rollout-policies.ts';
import { buildRollout } from './builders/rollouts.ts';
import { buildSnapshot } from './builders/snapshots.ts';
import { buildStage } from './builders/stages.ts';
import { T0 } from './clock/times.ts';
import { outcomeOf, turnFromJson, turnToJson } from './turn-json.ts';

test('any turn that is read back has the same assessment, commands and explanation', () => {
  const property = fc.property(arbitrarySituation(), (turn) => {
    const again = turnFromJson(turnToJson(turn));
    expect(outcomeOf(again)).toEqual(outcomeOf(turn));
  });
  fc.assert(property, { numRuns: 300 });
});

test('what JSON lacks comes back: maps, sets and numbers without end', () => {
  const policy = { ...buildPolicy(), targetDeadlineMs: Number.POSITIVE_INFINITY };
  const built = buildSnapshot(buildRollout([buildStage('worker', ['w1', 'w2'])]));
  const targets = { ...built.targets, observable: new Set(['w2', 'of another plan']) };
  const snapshot = { ...built, targets };
  const again = turnFromJson(turnToJson({ snapshot, policy, now: T0 }));
  expect(again.policy).toEqual(policy);
  expect(again.snapshot.plan.controls).toEqual(snapshot.plan.controls);
  expect(['w1', 'w2'].map((name) => again.snapshot.targets.observable?.has(name))).toEqual([
    false,
    true,
  ]);
});
