/** Tests that the limits in a signal's policy override the flags. */
import { expect, test } from 'vitest';
import { limitsFor } from './fetch.ts';

const FLAGS = { maxBytes: 1, reserveBytes: 4, totalMs: 2, stallMs: 3 };

test.each([
  [undefined, FLAGS],
  [{ soakMs: 7 }, FLAGS],
  [{ diskReserveBytes: 0 }, { ...FLAGS, reserveBytes: 0 }],
  [{ downloadTimeoutMs: 9 }, { ...FLAGS, totalMs: 9 }],
  [{ requireHttps: true }, { ...FLAGS, requireHttps: true }],
] as const)('the limits of the agent with the policy %j', (policy, limits) => {
  expect(limitsFor(FLAGS, policy)).toEqual(limits);
});
