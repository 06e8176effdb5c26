/** Proves how the timeout of a caller is read, and that the caller always gets an answer before the timeout. */
import { expect, test } from 'vitest';
import { FakeClock, settle } from '../../../../test/support/clock/fake-clock.ts';
import { T0 } from '../../../../test/support/clock/times.ts';
import { answerWithin } from './extension-server.ts';
import { within } from './hook-service.ts';

test.each<[string | null, number]>([
  ['10s', 9500],
  ['3s', 2500],
  ['30s', 9500],
  [null, 9500],
  ['soon', 9500],
  ['1.5s', 1000],
  ['0s', 9500],
  ['-5s', 9500],
  ['10', 9500],
  ['300ms', 100],
])('of %s it takes %d ms', (granted, milliseconds) => {
  expect(answerWithin(granted, 10_000)).toBe(milliseconds);
});

test('what takes longer is told to end, and another answer is given', async () => {
  const clock = new FakeClock(T0);
  const never = Promise.withResolvers<string>();
  let told: AbortSignal | undefined;
  const work = async (abort: AbortSignal): Promise<string> => {
    told = abort;
    return await never.promise;
  };
  const answer = within(clock, 1000, work, () => 'later');
  await settle();
  expect(told?.aborted).toBe(false);
  await clock.advance(1000);
  expect(await answer).toBe('later');
  expect(told?.aborted).toBe(true);
});
