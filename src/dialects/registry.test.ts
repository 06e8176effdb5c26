/** Owns the tie between the dialects that there are and the names by which policies choose plans. */
import { expect, test } from 'vitest';
import { DIALECT_NAMES } from '../api/refit/upgrade-policy.ts';
import { DIALECTS } from './registry.ts';

test('policies can name every dialect, and no other', () => {
  expect(DIALECTS.map(({ name }) => name).toSorted()).toEqual([...DIALECT_NAMES].toSorted());
});
