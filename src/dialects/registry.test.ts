/** Proves that policies can choose the plans of each dialect by its name. */
import { expect, test } from 'vitest';
import { DIALECT_NAMES } from '../api/refit/upgrade-policy.ts';
import { DIALECTS } from './registry.ts';

test('policies can name every dialect, and no other', () => {
  expect(DIALECTS.map(({ name }) => name).toSorted()).toEqual([...DIALECT_NAMES].toSorted());
});
