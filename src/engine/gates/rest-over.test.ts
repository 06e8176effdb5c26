/** Tests `settle` of a policy: an upgraded node keeps its slot until it has worked uncordoned for this time. */
import { expect, test } from 'vitest';
import { succeeded } from '../../../test/support/builders/observations.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { assess } from '../assess/assess.ts';
import type { TargetEvaluation } from '../assess/evaluation.ts';
import type { TargetFacts } from '../model/facts.ts';

/**
 * Returns the evaluation of a node that succeeded at T0 and has to settle for one hour. The leader has watched it all
 * the time.
 */
function settling(now: number, facts: Partial<TargetFacts> = {}, restMs = 0): TargetEvaluation {
  const stage = buildStage('worker', [buildTarget('w1', 'intended')], { restMs });
  const known = { observation: succeeded(), watchedMs: now, ...facts };
  const snapshot = buildSnapshot(buildRollout([stage]), { w1: known });
  const policy = buildPolicy({ name: 'careful', settleMs: HOUR });
  const [target = buildTarget('w1')] = stage.targets;
  return assess(snapshot, policy, T0 + now).of(stage, target);
}

test('the slot stays taken until the node has worked for the whole period', () => {
  expect(settling(HOUR - 1)).toMatchObject({
    reason: {
      code: 'Resting',
      message:
        'w1 keeps its slot for 1 h after its success, because UpgradePolicy careful has settle: 1 h',
    },
    until: later(HOUR),
  });
  expect(settling(HOUR)).toMatchObject({ next: 'done' });
});

test('the longer one of the two periods counts', () => {
  expect(settling(HOUR, {}, 2 * HOUR)).toMatchObject({
    reason: { message: 'w1 keeps its slot for 2 h after its success' },
  });
  expect(settling(HOUR, {}, MINUTE)).toMatchObject({ next: 'done' });
});

test('a node that is not Ready for a moment is waited for, also after the ready deadline', () => {
  const facts = { ready: false, readySince: later(40 * MINUTE) };
  expect(settling(41 * MINUTE, facts)).toMatchObject({ phase: 'verifying', gate: 'node-ready' });
});

test('a node that stays not Ready fails at the ready deadline, before its period is over', () => {
  const facts = { ready: false, readySince: later(10 * MINUTE) };
  expect(settling(21 * MINUTE, facts)).toMatchObject({
    next: 'failed',
    reason: { code: 'NodeNotReady' },
  });
});

test('a node whose clock is behind gets the whole deadline from the leader that watches it', () => {
  const facts = { ready: false, readySince: later(-5 * HOUR), watchedMs: MINUTE };
  expect(settling(21 * MINUTE, facts)).toMatchObject({ phase: 'verifying', gate: 'node-ready' });
});

test('a report from before the attempt does not shorten the period', () => {
  const observation = succeeded(later(-5 * HOUR), later(-5 * HOUR));
  expect(settling(MINUTE, { observation })).toMatchObject({ reason: { code: 'Resting' } });
  expect(settling(HOUR, { observation })).toMatchObject({ next: 'done' });
});
