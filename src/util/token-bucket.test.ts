/** Shows the rate that a bucket grants, and that its reserve is bounded. */
import { expect, test } from 'vitest';
import { FakeClock } from '../../test/faults/fake-clock.ts';
import { TokenBucket } from './backoff.ts';

test('a burst is free, then tokens come at the rate', () => {
  const bucket = new TokenBucket(new FakeClock(), { perSecond: 10, burst: 3 });
  expect(Array.from({ length: 5 }, () => bucket.take())).toEqual([0, 0, 0, 100, 200]);
});

test('what is not used is saved, but not for ever', async () => {
  const clock = new FakeClock();
  const bucket = new TokenBucket(clock, { perSecond: 1, burst: 2 });
  expect([bucket.take(), bucket.take()]).toEqual([0, 0]);
  await clock.advance(1_000);
  expect([bucket.take(), bucket.take()]).toEqual([0, 1_000]);
  await clock.advance(3_600_000);
  expect([bucket.take(), bucket.take(), bucket.take()]).toEqual([0, 0, 1_000]);
});
