/** Tests the rate that a token bucket grants, and that its reserve is bounded. */
import { expect, test } from 'vitest';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { createTokenBucket } from './clock.ts';

test('a burst is free, then tokens come at the rate', () => {
  const take = createTokenBucket(new FakeClock(), { perSecond: 10, burst: 3 });
  expect(Array.from({ length: 5 }, () => take())).toEqual([0, 0, 0, 100, 200]);
});

test('what is not used is saved, but not for ever', async () => {
  const clock = new FakeClock();
  const take = createTokenBucket(clock, { perSecond: 1, burst: 2 });
  expect([take(), take()]).toEqual([0, 0]);
  await clock.advance(1_000);
  expect([take(), take()]).toEqual([0, 1_000]);
  await clock.advance(3_600_000);
  expect([take(), take(), take()]).toEqual([0, 0, 1_000]);
});
