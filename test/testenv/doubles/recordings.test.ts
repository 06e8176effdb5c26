/** Owns the proof that the doubles of k0s write what real k0s was recorded to write, in the same order, with the same answers. */
import { expect, test } from 'vitest';
import { loadRecording } from '../../doubles/recorded-plan.ts';
import { Stage, type StageOptions } from '../../doubles/stage.ts';
import { linesByObject } from '../../doubles/write-lines.ts';
import { controlPlane, kubeconfigFor } from '../control-plane.ts';

type Cast = Pick<StageOptions, 'controllers'> & Partial<StageOptions>;

async function startStage(cast: Cast): Promise<Stage> {
  return await Stage.start({ plane: { url: controlPlane().url, kubeconfig: kubeconfigFor }, ...cast });
}

/** `c1` and `c3` lead, as in the recordings. */
const THREE = { controllers: ['c1', 'c2', 'c3'], reluctant: ['c2'] };

test.each<[string, string, Cast]>([
  ['plan-3c3w-concurrent1', 'Completed', { ...THREE, workers: ['w1', 'w2', 'w3'] }],
  ['02a-forced-same-old', 'Completed', { ...THREE, workers: ['w1', 'w2'] }],
  ['02b-forced-same-version-string', 'Completed', { controllers: ['c3', 'c2'], workers: ['w1'] }],
])('%s', async (name, state, cast) => {
  const recording = loadRecording(name);
  await using stage = await startStage({ ...cast, picks: recording.picks });
  const start = stage.recorder.writes.length;
  await stage.create(recording.plan(stage.downloads));
  await stage.untilPlan(state);
  expect(linesByObject(stage.recorder.writes.slice(start))).toEqual(linesByObject(recording.writes));
});
