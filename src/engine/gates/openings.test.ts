/** Tests when windows, blackouts and openings by people let targets start, and how an opening is described. */
import { expect, test } from 'vitest';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { HOUR, later, T0 } from '../../../test/support/clock/times.ts';
import { NO_CONTROLS } from '../model/controls.ts';
import {
  describeOpening,
  endOfOpening,
  isTimetableOpen,
  openingFor,
  openUntil,
} from './window-open.ts';

const opening = { until: later(HOUR) };
const END = endOfOpening(opening, { windows: [] });

test('an opening by a person names who opened the window, until when, and why', () => {
  const policy = buildPolicy();
  expect(END).toContain(later(HOUR).slice(0, 10));
  expect(describeOpening(opening, policy)).toBe(
    `somebody opened the maintenance window until ${END}`,
  );
  expect(describeOpening({ ...opening, by: 'ann', reason: 'a fix' }, policy)).toBe(
    `ann opened the maintenance window until ${END} (a fix)`,
  );
});

test('an opening counts during a blackout only if the person says so', () => {
  const blackouts = [{ from: T0, to: T0 + 2 * HOUR }];
  const at = (now: number, more = {}) =>
    openingFor(
      { blackouts },
      { ...NO_CONTROLS, openWindow: { until: later(5 * HOUR), ...more } },
      now,
    ) !== undefined;
  expect([at(T0 - 1), at(T0), at(T0 + 2 * HOUR - 1), at(T0 + 2 * HOUR)]).toEqual([
    true,
    false,
    false,
    true,
  ]);
  expect(at(T0, { blackouts: true })).toBe(true);
});

test('a timetable without windows is open, unless there is a blackout', () => {
  const dark = buildPolicy({ blackouts: [{ from: T0, to: T0 + HOUR }] });
  expect([isTimetableOpen(buildPolicy(), T0), isTimetableOpen(dark, T0)]).toEqual([true, false]);
  expect(openUntil(dark, T0)).toBeUndefined();
  expect(openUntil(buildPolicy({ blackouts: [{ from: T0 + HOUR, to: T0 + 2 * HOUR }] }), T0)).toBe(
    T0 + HOUR,
  );
});
