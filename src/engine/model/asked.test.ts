/** Tests what readers learn from each state of a question. */
import { expect, test } from 'vitest';
import {
  type Asked,
  answered,
  answerOf,
  isAwaited,
  NEVER,
  UNASKED,
  unanswered,
  untilAsked,
} from './asked.ts';
import { because } from './reasons.ts';

const reason = because('CannotDecide', 'no route to the API server');
const SILENT = unanswered({ reason, recheckMs: 2000 });

test.each<[string, Asked<boolean>, boolean | undefined, boolean]>([
  ['an answer', answered(true), true, false],
  ['the answer no', answered(false), false, false],
  ['a question that is asked later', UNASKED, undefined, true],
  ['a question without an answer', SILENT, undefined, true],
  ['a question that this process never asks', NEVER, undefined, false],
])('%s: its answer, and whether an answer is still to come', (_, asked, answer, awaited) => {
  expect([answerOf(asked), isAwaited(asked)]).toEqual([answer, awaited]);
});

test('a wait for an answer has the reason of the failed question, and lasts until it is repeated', () => {
  expect(untilAsked(SILENT)).toEqual({ reason, recheckMs: 2000, ends: 'the probe gets an answer' });
});
