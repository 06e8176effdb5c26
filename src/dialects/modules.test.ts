/** Tests the list of the modules. */
import { expect, test } from 'vitest';
import { DIALECT_NAMES } from '../api/refit/upgrade-policy.ts';
import { MODULES } from './modules.ts';

test('policies can name the dialect of every module, and no other dialect', () => {
  expect(MODULES.map(({ name }) => name).toSorted()).toEqual([...DIALECT_NAMES].toSorted());
});

test('each module has the name of the dialect that it loads', async () => {
  const loaded = await Promise.all(MODULES.map(async (each) => await each.view()));
  expect(loaded.map(({ name }) => name)).toEqual(MODULES.map(({ name }) => name));
});

test('at most one module has a Lease, because a status shows one leader', () => {
  const leases = MODULES.flatMap(({ process }) => process.lease ?? []);
  expect(leases).toHaveLength(1);
});

test('at most one module has objects of its own, because a command for an object names no dialect', () => {
  expect(MODULES.filter(({ objects }) => objects !== undefined)).toHaveLength(1);
});
