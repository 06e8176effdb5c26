/** Tests the notes about nodes that are still cordoned for a deleted plan. */
import { expect, test } from 'vitest';
import { T0 } from '../../../test/support/clock/times.ts';
import { LEADER_LEASE } from '../../dialects/autopilot/leader-lease.ts';
import type { ShownStatus } from './json-form.ts';
import { render } from './render.ts';

/** The last plan was deleted while no controller ran. */
const STATUS: ShownStatus = {
  leader: { state: 'none' },
  lease: LEADER_LEASE,
  orphaned: ['w1'],
  plans: [],
};
const SHAPE = { hasColours: false, size: () => ({ columns: 400, rows: 50 }), advises: false };

test('without a plan, the note about the missing leader names the Lease that nobody holds', () => {
  expect(render(STATUS, 'text', T0, SHAPE)).toContain(
    'no refit controller holds lease k0s-autopilot/k0s-autopilot-controller. No new node starts until one runs.',
  );
});

test.each(['json', 'yaml'] as const)('the form %s of a status does not have the Lease', (form) => {
  const text = render(STATUS, form, T0, SHAPE);
  expect(text).toContain('orphaned');
  expect(text).not.toContain('lease');
});
