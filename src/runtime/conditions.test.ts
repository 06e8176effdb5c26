/** Tests when a condition changes, and when its time changes. */
import { expect, test } from 'vitest';
import type { Condition } from '../kube/resources.ts';
import { withCondition } from './conditions.ts';

const NOON = Date.UTC(2026, 0, 1, 12);
const LATER = NOON + 60_000;
const waiting = {
  type: 'Ready',
  status: 'False',
  reason: 'Waiting',
  message: 'for w1',
  observedGeneration: 1,
} as const;
const first = withCondition(undefined, waiting, NOON);

test.each<[string, object, string]>([
  ['another status moves the time', { status: 'True' }, '2026-01-01T12:01:00Z'],
  ['another reason does not', { reason: 'Windy' }, '2026-01-01T12:00:00Z'],
  ['another message does not', { message: 'for w2' }, '2026-01-01T12:00:00Z'],
  ['another generation does not', { observedGeneration: 2 }, '2026-01-01T12:00:00Z'],
])('%s', (_name, change, lastTransitionTime) => {
  const next = withCondition(first, { ...waiting, ...change }, LATER);
  expect(next).toEqual([{ ...waiting, ...change, lastTransitionTime }]);
});

test('the same again is the same list', () => {
  expect(withCondition(first, { ...waiting }, LATER)).toBe(first);
});

test('other types stay, in order of type', () => {
  const others: Condition[] = [
    { type: 'Zeal', status: 'True' },
    { type: 'Aim', status: 'Unknown' },
  ];
  const next = withCondition(others, waiting, NOON);
  expect(next.map(({ type }) => type)).toEqual(['Aim', 'Ready', 'Zeal']);
  expect(next[1]).toMatchObject(waiting);
});

test('what steers a terminal is not written, and the same text again is the same list', () => {
  const odd = { ...waiting, message: 'for w1\u001B[2J\u202E\u200B' };
  const written = withCondition(undefined, odd, NOON);
  expect(written[0]?.message).toBe('for w1\uFFFD[2J\uFFFD\uFFFD');
  expect(withCondition(written, odd, LATER)).toBe(written);
});
