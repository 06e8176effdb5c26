import { expect, test } from 'vitest';
import { isSuccess } from './http-status.ts';

test.each([
  [0, false],
  [199, false],
  [200, true],
  [204, true],
  [299, true],
  [300, false],
  [500, false],
])('the status %d of an answer is a success: %s', (status, expected) => {
  expect(isSuccess(status)).toBe(expected);
});
