/** Proves that the record of an ended rollout is not trusted if the plan or the nodes contradict it. */
import { expect, test } from 'vitest';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, T0 } from '../../../test/support/clock/times.ts';
import type { TargetFacts } from '../model/decision.ts';
import { because } from '../model/reasons.ts';
import type { Rollout } from '../model/rollout.ts';
import { planEndOf } from './ended.ts';

const stage = { ...buildStage('worker', [buildTarget('w1', 'done')]), version: 'v1.37.0' };
const done = buildRollout([stage], { phase: 'done' });
const older = { version: 'v1.36.0', isBehind: true };
const edited = (how: string): string =>
  `EditedAfterEnd: the plan was edited after it ended (${how}); it will not run: delete it and apply it again`;
const skipped = because('SkippedMinor', 'w1 would skip v1.37 on its way to v1.38.0');

test.each<[string, Rollout, Partial<TargetFacts>, number, string, string | undefined]>([
  ['as recorded', done, { asked: 'v1.37.0' }, HOUR, 'done', undefined],
  [
    'edited to another version',
    done,
    { asked: 'v1.36.5' },
    0,
    'edited',
    edited('it was carried out with v1.36.5 and now says v1.37.0'),
  ],
  [
    'edited while it runs',
    { ...done, phase: 'running' },
    { asked: 'v1' },
    HOUR,
    'running',
    undefined,
  ],
  [
    'edited as its dialect knows',
    { ...done, edit: 'w2 is listed now' },
    {},
    0,
    'edited',
    edited('w2 is listed now'),
  ],
  [
    'failed, then edited',
    { ...done, phase: 'failed' },
    { asked: 'v1.36.5' },
    0,
    'edited',
    edited('it was carried out with v1.36.5 and now says v1.37.0'),
  ],
  [
    'refused for a version that is no longer there',
    { ...done, phase: 'invalid', reason: skipped },
    {},
    0,
    'edited',
    edited('it was refused for another version than v1.37.0'),
  ],
  [
    'refused for the version that is there',
    { ...done, stages: [{ ...stage, version: 'v1.38.0' }], phase: 'invalid', reason: skipped },
    {},
    0,
    'invalid',
    'SkippedMinor: w1 would skip v1.37 on its way to v1.38.0',
  ],
  ['a node that has not reported yet', done, older, 0, 'done', undefined],
  [
    'a node that somebody put back',
    done,
    older,
    HOUR,
    'differs',
    'VersionDiffers: w1 runs v1.36.0, although the plan upgraded it to v1.37.0',
  ],
  [
    'without any target',
    buildRollout([buildStage('worker', [])], { phase: 'done' }),
    {},
    HOUR,
    'empty',
    'NoTargets: there was no target, so nothing was done',
  ],
])('%s', (_name, rollout, facts, after, phase, reason) => {
  const end = planEndOf(buildSnapshot(rollout, { w1: facts }), T0 + after);
  const { code, message } = end.reason ?? {};
  const told = end.reason === undefined ? undefined : `${code}: ${message}`;
  expect([end.phase, told]).toEqual([phase, reason]);
});

test('the targets are read once for all who ask at one moment, and anew at the next', () => {
  const built = buildSnapshot(done, { w1: older });
  let reads = 0;
  const get: typeof built.facts.get = (key) => {
    reads += 1;
    return built.facts.get(key);
  };
  const snapshot = { ...built, facts: { get } };
  const first = planEndOf(snapshot, T0 + HOUR);
  const readsOfOne = reads;
  expect(planEndOf(snapshot, T0 + HOUR)).toBe(first);
  expect([readsOfOne > 0, reads]).toEqual([true, readsOfOne]);
  planEndOf(snapshot, T0 + 2 * HOUR);
  expect(reads).toBeGreaterThan(readsOfOne);
});
