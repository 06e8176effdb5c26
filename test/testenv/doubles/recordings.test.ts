/** Owns the proof that the doubles of k0s write what real k0s was recorded to write, in the same order, with the same answers. */
import { expect, test } from 'vitest';
import { loadRecording } from '../../doubles/recorded-plan.ts';
import { NEW, type StageOptions, startStage } from '../../doubles/stage.ts';
import { linesByObject } from '../../doubles/write-lines.ts';

type Cast = Omit<StageOptions, 'plane'>;

/** `c1` and `c3` lead, as in the recordings. */
const THREE = { controllers: ['c1', 'c2', 'c3'], reluctant: ['c2'] };
const LED_BY_C3 = { controllers: ['c3', 'c1', 'c2'], reluctant: ['c2'] };
const ALONE = { controllers: ['c3'] };

const allAt = (...names: string[]): Record<string, string> => Object.fromEntries(names.map((name) => [name, NEW]));

/**
 * Compared is, for each object, every write of autopilot from the Plan's creation to the named state: who made it (the node
 * itself, the leader), how it was answered, and the status, states or patch in it. Not compared are times, the order between
 * objects, and how often a conflict came in a row.
 */
test.each<[recording: string, state: string, cast: Cast]>([
  ['plan-3c3w-concurrent1', 'Completed', { ...THREE, workers: ['w1', 'w2', 'w3'] }],
  ['02a-forced-same-old', 'Completed', { ...THREE, workers: ['w1', 'w2'] }],
  ['02b-forced-same-version-string', 'Completed', { controllers: ['c3', 'c2'], workers: ['w1'] }],
  [
    '02c-forced-same-new',
    'Completed',
    { ...LED_BY_C3, workers: ['w1', 'w2'], versions: allAt('c1', 'c2', 'c3', 'w1', 'w2') },
  ],
  ['03b-wrong-sha', 'ApplyFailed', { ...ALONE, workers: ['w3'] }],
  ['05a-airgap-double', 'Completed', { ...ALONE, workers: ['w1', 'w2', 'w3'], faults: [{ paceMs: 2, times: 9 }] }],
  ['06-two-k0supdates', 'Completed', { ...ALONE, workers: ['w1'] }],
  [
    '08a-unparsable-label-selector',
    'Completed',
    { ...ALONE, workers: ['w1', 'w2', 'w3'], versions: allAt('w2', 'w3') },
  ],
  ['08b-field-selector-other', 'Completed', { ...ALONE, workers: ['w1'] }],
  ['10a-concurrent-0', 'SchedulableWait', { ...ALONE, workers: ['w1', 'w2'] }],
  ['10b-item-with-both', 'Completed', { ...ALONE, workers: ['w1'], versions: allAt('w1') }],
  ['10d-empty-id', 'IncompleteTargets', { ...ALONE, workers: ['w1'], picks: ['w1'] }],
  ['10f-missing-node', 'IncompleteTargets', { ...ALONE, workers: ['w1'] }],
  ['10g-missing-platform', 'IncompleteTargets', { ...ALONE, workers: ['w1'] }],
])('%s', async (name, state, cast) => {
  const recording = loadRecording(name);
  await using stage = await startStage({ picks: recording.picks, ...cast });
  const start = stage.recorder.writes.length;
  await stage.create(recording.plan(stage.downloads));
  await stage.untilPlan(state);
  expect(linesByObject(stage.recorder.writes.slice(start))).toEqual(linesByObject(recording.writes));
});
