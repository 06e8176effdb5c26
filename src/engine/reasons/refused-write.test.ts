/** Tests that the sentence about a refused write is found again. */
import { expect, test } from 'vitest';
import { isRefusedIn, refusedWrite } from './refused-write.ts';

const NAMES = ['w1', 'w10', '1', 'w1.example', 'the', 'xw1'];

test.each(NAMES)('the refused write for %s is found, and no other target of the record', (name) => {
  const sentence = refusedWrite(name, 'to change its object: w1: nodes "w10" is forbidden');
  for (const record of [sentence, `${sentence}; others wait`, `no answer; ${sentence}`])
    expect(NAMES.filter((each) => isRefusedIn(record, each))).toEqual([name]);
});

test('a record of 0.1.0 is read', () => {
  const record = 'a: the API server refuses to change its object: nodes "a" is forbidden';
  expect(isRefusedIn(record, 'a')).toBe(true);
});
