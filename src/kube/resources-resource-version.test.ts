/** Tests the order of resourceVersions. */
import { expect, test } from 'vitest';
import { compareResourceVersions } from './resources.ts';

test.each([
  ['9', '10', -1],
  ['10', '9', 1],
  ['10', '10', 0],
  ['9007199254740993', '9007199254740992', 1],
  ['99999999999999999999999999', '100000000000000000000000000', -1],
])('%s against %s: %i', (a, b, sign) => {
  expect(compareResourceVersions(a, b)).toBe(sign);
});

test('what is no number has no order', () => {
  expect(() => compareResourceVersions('a1', '2')).toThrow(SyntaxError);
});
