/** Tests the merge patches of the status of a NodeRollout. */
import { expect, test } from 'vitest';
import { later } from '../../../test/support/clock/times.ts';
import type { NodeRolloutStatus } from '../../api/refit/node-rollout.ts';
import { patchOf, showsAll } from './node-rollout-object.ts';

const WAITING = { reason: 'Paused', message: 'the plan is paused', since: later(0) };
const STATUS: NodeRolloutStatus = {
  phase: 'running',
  version: 'v2',
  waiting: { ...WAITING, ends: 'somebody resumes it' },
  wave: { current: 1, total: 2 },
  history: [],
};

test('a patch has only the fields that differ, and removes fields and members with null', () => {
  const { wave: _wave, ...rest } = STATUS;
  expect(patchOf({ ...rest, version: 'v3', waiting: WAITING }, STATUS)).toEqual({
    version: 'v3',
    waiting: { ...WAITING, ends: null },
    wave: null,
  });
  expect(patchOf(STATUS, STATUS)).toEqual({});
});

test('a patch of an empty status, and of a member that is new, has the values as they are', () => {
  expect(patchOf(STATUS)).toEqual(STATUS);
  expect(patchOf({ waiting: WAITING }, {})).toEqual({ waiting: WAITING });
});

test('a status shows everything if its fields are equal, whatever other writers have added', () => {
  const told = { told: { run: '', phase: '', waves: 0, approval: 0, failed: 0, waiting: '' } };
  expect(showsAll(STATUS, { ...STATUS, notifications: told })).toBe(true);
  expect(showsAll(STATUS, { ...STATUS, version: 'v3' })).toBe(false);
  expect(showsAll(STATUS)).toBe(false);
  expect(showsAll({})).toBe(true);
});
