/** Tests that an Event reports once that an ended plan no longer matches its recorded end. */
import { expect, test } from 'vitest';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, T0 } from '../../../test/support/clock/times.ts';
import { type Assessment, assess } from '../assess/assess.ts';
import type { Rollout } from '../model/rollout.ts';
import { endMemory } from './contradicted-ends.ts';

function given(more: Partial<Rollout> = {}, isBehind = false): Assessment {
  const stage = buildStage('worker', [buildTarget('w1', 'done')], { version: 'v2' });
  const rollout = buildRollout([stage], { phase: 'done', ...more });
  const snapshot = buildSnapshot(rollout, { w1: { isBehind, version: 'v1' } });
  return assess(snapshot, buildPolicy(), T0 + HOUR);
}

const EDITED = given({ edit: 'it names w2 now' });
const BEHIND = given({}, true);

test('an edit and a node with an older version are told once each, and again after they were undone', () => {
  const memory = endMemory();
  const told = (assessment: Assessment, key = 'plan') => {
    const reason = memory.at(key, assessment);
    return reason && `${reason.code}: ${reason.message}`;
  };
  const differs = 'VersionDiffers: w1 runs v1, although the plan brought it to v2';
  const edited =
    'EditedAfterEnd: the plan was edited after it ended (it names w2 now); it will not run: delete it and apply it again';
  expect(told(given())).toBeUndefined();
  expect(told(BEHIND)).toBe(differs);
  expect(told(BEHIND)).toBeUndefined();
  expect(told(BEHIND, 'another')).toBe(differs);
  expect(told(EDITED)).toBe(edited);
  expect(told(EDITED)).toBeUndefined();
  expect(told(given())).toBeUndefined();
  expect(told(EDITED)).toBe(edited);
  memory.forget('plan');
  expect(told(EDITED)).toBe(edited);
});

test('the end of a plan without targets, or with failures, is not told again', () => {
  const memory = endMemory();
  expect(memory.at('plan', given({ stages: [] }))).toBeUndefined();
  const reason = { code: 'TargetFailed', message: 'w1: 404' } as const;
  expect(memory.at('plan', given({ phase: 'failed', reason }))).toBeUndefined();
});
