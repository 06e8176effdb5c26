/** Tests that each status at which an agent works has a shade, so that the time of no step is drawn as a wait. */
import { expect, test } from 'vitest';
import { isFinal, REPORTED_STATUSES } from '../../signal/names.ts';
import { SIGNAL_STEPS } from './signal-steps.ts';

test('each status at which an agent works has a shade, and no other status has one', () => {
  const working = REPORTED_STATUSES.filter((status) => !isFinal(status));
  expect([...SIGNAL_STEPS.keys()].toSorted()).toEqual(working.toSorted());
});
