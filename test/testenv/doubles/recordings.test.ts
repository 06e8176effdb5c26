/** Tests that the doubles of k0s make the recorded writes of real k0s, in the same order, with the same answers. */
import { test } from 'vitest';
import { NEW } from '../../support/doubles/payload-files.ts';
import { type Cast, runRecorded } from '../../support/doubles/recorded-run.ts';
import { WHOLE } from '../../support/whole.ts';

/** The first controller in each list leads: `c1` or `c3`, as in the recordings. */
const THREE = { controllers: ['c1', 'c2', 'c3'], reluctant: ['c2'] };
const LED_BY_C3 = { controllers: ['c3', 'c1', 'c2'], reluctant: ['c2'] };
const ALONE = { controllers: ['c3'] };

const allAt = (...names: string[]): Record<string, string> =>
  Object.fromEntries(names.map((name) => [name, NEW]));

const RECORDINGS: readonly [recording: string, state: string, cast: Cast][] = [
  ['plan-3c3w-concurrent1', 'Completed', { ...THREE, workers: ['w1', 'w2', 'w3'] }],
  ['02a-forced-same-old', 'Completed', { ...THREE, workers: ['w1', 'w2'] }],
  ['02b-forced-same-version-string', 'Completed', { controllers: ['c3', 'c2'], workers: ['w1'] }],
  [
    '02c-forced-same-new',
    'Completed',
    { ...LED_BY_C3, workers: ['w1', 'w2'], versions: allAt('c1', 'c2', 'c3', 'w1', 'w2') },
  ],
  ['03b-wrong-sha', 'ApplyFailed', { ...ALONE, workers: ['w3'] }],
  [
    '05a-airgap-double',
    'Completed',
    { ...ALONE, workers: ['w1', 'w2', 'w3'], faults: [{ paceMs: 2, times: 9 }] },
  ],
  ['06-two-k0supdates', 'Completed', { ...ALONE, workers: ['w1'] }],
  [
    '08a-unparsable-label-selector',
    'Completed',
    { ...ALONE, workers: ['w1', 'w2', 'w3'], versions: allAt('w2', 'w3') },
  ],
  ['08b-field-selector-other', 'Completed', { ...ALONE, workers: ['w1'] }],
  ['08c-unparsable-field-selector', 'SchedulableWait', { ...ALONE, workers: ['w1', 'w2', 'w3'] }],
  ['08d-unparsable-label-with-good-field', 'SchedulableWait', { ...ALONE, workers: ['w1', 'w2'] }],
  ['08e-controllers-unparsable', 'Completed', LED_BY_C3],
  ['08f-label-matches-nothing', 'Completed', { ...ALONE, workers: ['w1'] }],
  ['10a-concurrent-0', 'SchedulableWait', { ...ALONE, workers: ['w1', 'w2'] }],
  ['10b-item-with-both', 'Completed', { ...ALONE, workers: ['w1'], versions: allAt('w1') }],
  ['10d-empty-id', 'IncompleteTargets', { ...ALONE, workers: ['w1'], picks: ['w1'] }],
  ['10f-missing-node', 'IncompleteTargets', { ...ALONE, workers: ['w1'] }],
  ['10g-missing-platform', 'IncompleteTargets', { ...ALONE, workers: ['w1'] }],
];
/** The longest recordings. The list also has a shorter recording of each kind. */
const LONG = ['02a-forced-same-old', '02c-forced-same-new'];

test.each(RECORDINGS.filter(([name]) => WHOLE || !LONG.includes(name)))(
  '%s',
  async (name, state, cast) => {
    await using run = await runRecorded(name, cast);
    await run.stage.untilPlan(state);
    await run.untilAsRecorded();
  },
);
