/** Tests that at each phase of a node some configuration turns a plan back: a new status of the product needs one, too. */
import { expect, test } from 'vitest';
import { REPORTED_STATUSES } from '../../src/signal/names.ts';
import { CONFIGURATIONS } from './configurations.ts';
import { FORWARD_PHASES } from './forward-phases.ts';

test.each(FORWARD_PHASES)('every test run turns a plan back at %s', (phase) => {
  expect(CONFIGURATIONS.map(({ turnsBack }) => turnsBack?.phase)).toContain(phase);
});

test.each(REPORTED_STATUSES)('%s is a phase', (status) => {
  expect(FORWARD_PHASES).toContain(status);
});
