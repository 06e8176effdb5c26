/** Tests that parts of a rollout are read and replaced without changing the original. */
import { describe, expect, test } from 'vitest';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { activeStage, isSettled, type RecordedState, targetsIn, withTargets } from './rollout.ts';

test.each<[RecordedState, boolean]>([
  ['pending', false],
  ['intended', false],
  ['done', true],
  ['failed', true],
  ['missing', true],
  ['unsupported', true],
])('a target that is %s is settled: %s', (state, settled) => {
  expect(isSettled(buildTarget('w1', state))).toBe(settled);
});

describe('the active stage', () => {
  const over = buildStage('controller', [buildTarget('c1', 'done')]);
  const empty = buildStage('worker', []);
  const next = buildStage('controller', [buildTarget('c1', 'intended')], { command: 1 });
  const last = buildStage('worker', ['w1'], { command: 1 });
  test.each([
    ['the first that is not settled', [over, next, last], next],
    ['not one without targets', [empty, last], last],
    ['none where all are settled', [over, empty], undefined],
    ['none where there is none', [], undefined],
  ])('is %s', (_name, stages, active) => {
    expect(activeStage(buildRollout(stages))).toBe(active);
  });
});

describe('replacing targets', () => {
  const first = buildStage('worker', ['w1', 'w2']);
  const second = buildStage('worker', ['w1'], { command: 1 });
  const rollout = buildRollout([first, second]);

  test('by key: the same name in another command stays as it is', () => {
    const [w1] = second.targets;
    const after = withTargets(rollout, w1 ? [{ ...w1, state: 'done' }] : []);
    expect(after.stages.map(({ targets }) => targets.map(({ state }) => state))).toEqual([
      ['pending', 'pending'],
      ['done'],
    ]);
    expect(targetsIn(after, 'done', 'failed').map(({ key }) => key)).toEqual(['1/worker/w1']);
  });

  test('a stage without any of them stays the same object', () => {
    const [w1] = second.targets;
    expect(withTargets(rollout, w1 ? [{ ...w1, state: 'done' }] : []).stages[0]).toBe(first);
  });

  test('without any change gives the same rollout', () => {
    expect(withTargets(rollout, [])).toBe(rollout);
  });

  test('leaves the one that was given as it was', () => {
    const copy = structuredClone(rollout);
    withTargets(rollout, [{ ...buildTarget('w1', 'done'), key: '0/worker/w1' }]);
    expect(rollout).toEqual(copy);
  });
});
