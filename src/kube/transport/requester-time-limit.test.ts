/** Tests that a timeout, the caller or the client can end a request, and that no timer or listener remains. */
import { expect, test, vi } from 'vitest';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { SkewedClock } from '../../../test/support/clock/skewed-clock.ts';
import { timeLimit } from './time-limit.ts';

test('time ends it, counted from the last permission', async () => {
  const clock = new FakeClock();
  const limit = timeLimit(clock, undefined);
  limit.allow(1_000, 'too late');
  await clock.advance(900);
  limit.allow(1_000, 'later');
  expect(limit.remaining).toBe(1_000);
  await clock.advance(999);
  limit.enforce();
  await clock.advance(1);
  expect(limit.abort.reason).toMatchObject({ message: 'later' });
  expect(() => limit.enforce()).toThrow('later');
});

test('a shorter limit ends it sooner than the one before', async () => {
  const clock = new FakeClock();
  const limit = timeLimit(clock, undefined);
  limit.allow(1_000, 'too late');
  limit.allow(10, 'idle');
  await clock.advance(10);
  expect(limit.abort.reason).toMatchObject({ message: 'idle' });
});

test('a stream of many parts holds one timer, and no part makes a new one', async () => {
  const clock = new FakeClock();
  const schedule = vi.spyOn(clock, 'schedule');
  const limit = timeLimit(clock, undefined);
  for (let part = 0; part < 1_000; part++) limit.allow(1_000, 'idle');
  expect(clock.pending).toBe(1);
  await clock.advance(999);
  limit.allow(1_000, 'idle');
  await clock.advance(999);
  expect([limit.abort.aborted, schedule.mock.calls.length]).toEqual([false, 2]);
});

test('the caller ends it, before or after it began', () => {
  const reason = new Error('enough');
  const early = AbortSignal.abort(reason);
  const late = new AbortController();
  const limits = [early, late.signal].map((abort) => timeLimit(new FakeClock(), abort));
  late.abort(reason);
  for (const { abort } of limits)
    expect(abort.reason).toMatchObject({ message: 'aborted by the caller', cause: reason });
});

test('a process that was halted sends nothing after its time, though no timer has told it yet', async () => {
  const base = new FakeClock();
  const clock = new SkewedClock(base);
  const limit = timeLimit(clock, undefined);
  limit.allow(1_000, 'too late');
  clock.halt();
  await base.advance(2_000);
  expect(limit.abort.aborted).toBe(false);
  expect(() => limit.enforce()).toThrow('the deadline passed');
});

test('once over, it holds neither a timer nor the caller', () => {
  const clock = new FakeClock();
  const caller = new AbortController();
  const limit = timeLimit(clock, caller.signal);
  limit.allow(1_000, 'too late');
  limit[Symbol.dispose]();
  caller.abort();
  expect([clock.pending, limit.abort.aborted]).toEqual([0, false]);
});
