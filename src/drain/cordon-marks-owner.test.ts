/** Tests the text that names the owner of a cordon: how it is written, and how it is read. */
import { expect, test } from 'vitest';
import { readOwner, writeOwner } from './cordon-marks.ts';

const ATTEMPT = '2026-11-20T14:00:00Z';

test.each([
  ['the leader', { plan: 'some-uid', attempt: ATTEMPT, kind: 'Plan' }, `some-uid/${ATTEMPT}/Plan`],
  ['a node for itself', { plan: 'some-id', attempt: ATTEMPT }, `some-id/${ATTEMPT}`],
  [
    'a node, for an id with a slash',
    { plan: 'release/1.37', attempt: ATTEMPT },
    `release/1.37/${ATTEMPT}`,
  ],
  [
    'a node, for an id that ends like a kind',
    { plan: 'release/Plan', attempt: ATTEMPT },
    `release/Plan/${ATTEMPT}`,
  ],
])('%s is read as it was written', (_, owner, text) => {
  expect(writeOwner(owner)).toBe(text);
  expect(readOwner(text)).toEqual(owner);
});

test.each(['', 'word', '/Plan', `/${ATTEMPT}/Plan`])('"%s" names no plan', (text) => {
  expect(readOwner(text)).toBeUndefined();
});
