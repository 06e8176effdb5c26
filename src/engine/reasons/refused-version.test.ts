/** Tests that a refused version is found by its whole text. */
import { expect, test } from 'vitest';
import { namesOneOf } from './refused-version.ts';

test.each<[string, string, boolean]>([
  ['v1.36.3+build.0', 'w1 cannot go from v1.34.1+build.0 to v1.36.3+build.0.', true],
  ['v1.36.3', 'v1.36.3 skips v1.35', true],
  ['v1.36.3', 'v1.36.30 skips v1.35', false],
  ['v1.36.3', 'v1.36.3+build.0 skips v1.35', false],
  ['v1.36.3-build1', 'to v1.36.3-build1, which', true],
  ['v1.36.3-rc.1', 'to v1.36.3-rc.1: no', true],
  ['1.36.3', 'to v1.36.3', false],
  ['v1.36.3', '', false],
])('whether the refusal of %s is in %j is %j', (version, sentence, expected) => {
  expect(namesOneOf(['v9.9.9', version], sentence)).toBe(expected);
});
