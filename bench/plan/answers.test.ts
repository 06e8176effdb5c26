/** Tests that a gap is the time between two answers, even if several requests between them get no answer. */
import { expect, onTestFinished, test } from 'vitest';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { watchAnswers } from './answers.ts';

test('the longest time between two answers', async () => {
  const clock = new FakeClock();
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  let isUp = true;
  const ask = async () => await (isUp ? Promise.resolve() : Promise.reject(new Error('refused')));
  const answers = watchAnswers(ask, clock, stop.signal);
  await clock.advance(0);
  expect(answers.longestGap()).toBeNaN();
  await clock.advance(100);
  expect(answers.longestGap()).toBe(50);
  isUp = false;
  await clock.advance(1_000);
  isUp = true;
  await clock.advance(100);
  expect(answers.longestGap()).toBe(1_050);
  const count = answers.count();
  stop.abort();
  await clock.advance(1_000);
  expect([answers.count(), clock.pending]).toEqual([count, 0]);
});
