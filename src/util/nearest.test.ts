/** Tests which known name is suggested for a wrong name. */
import { expect, test } from 'vitest';
import { nearest } from './nearest.ts';

const KNOWN = ['maxUnavailable', 'failureBudget', 'onFailure', 'settle', 'sha256', 'url'];

test.each([
  ['maxUnavailible', 'maxUnavailable'],
  ['failureBudgets', 'failureBudget'],
  ['onfailure', 'onFailure'],
  ['SETTLE', 'settle'],
  ['sha265', 'sha256'],
  ['stetle', 'settle'],
])('%s is close to %s', (wrong, known) => {
  expect(nearest(wrong, KNOWN)).toBe(known);
});

test.each(['canary', 'u', 'ur', 'maxUnavail', '', 'x'.repeat(1_000_000)])(
  'an unlike name is close to none',
  (wrong) => {
    expect(nearest(wrong, KNOWN)).toBeUndefined();
  },
);

test('the closest one wins, and the first of two that are equally close', () => {
  expect(nearest('secrets', ['secret', 'secrete'])).toBe('secret');
  expect(nearest('timout', ['timer', 'timeout'])).toBe('timeout');
});
