/**
 * Tests the clock: timers that can be cancelled, a sleep that ends with its AbortSignal, and the
 * text form of times.
 */
import { assert, integer, property } from 'fast-check';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { FakeClock, settle } from '../../test/support/clock/fake-clock.ts';
import { isoTime, microTime, rfc3339, sleep, systemClock } from './clock.ts';

describe('the real clock', () => {
  test('runs a callback later, and not before', async () => {
    const started = systemClock.monotonic();
    let fired = false;
    await new Promise<void>((resolve) => {
      systemClock.schedule(2, () => {
        fired = true;
        resolve();
      });
      expect(fired).toBe(false);
    });
    expect(systemClock.monotonic()).toBeGreaterThan(started);
  });

  test('a cancelled timer never fires', () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const callback = vi.fn();
    const cancel = systemClock.schedule(1000, callback);
    cancel();
    cancel();
    vi.advanceTimersByTime(5000);
    expect(callback).not.toHaveBeenCalled();
  });

  test.each([Number.POSITIVE_INFINITY, 2 ** 31, 30 * 24 * 3_600_000])(
    'a wait of %d ms, too long for a timer, does not fire at once',
    (ms) => {
      vi.useFakeTimers();
      onTestFinished(() => void vi.useRealTimers());
      const callback = vi.fn();
      const spy = vi.spyOn(globalThis, 'setTimeout');
      onTestFinished(() => spy.mockRestore());
      systemClock.schedule(ms, callback);
      expect(spy.mock.calls[0]?.[1]).toBe(2 ** 31 - 1);
      vi.advanceTimersByTime(3_600_000);
      expect(callback).not.toHaveBeenCalled();
    },
  );

  test('a wait that is too long for one timer ends when it is over, and can be cancelled until then', () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const kept = vi.fn();
    const cancelled = vi.fn();
    const month = 30 * 24 * 3_600_000;
    systemClock.schedule(month, kept);
    const cancel = systemClock.schedule(month, cancelled);
    vi.advanceTimersByTime(month - 1);
    expect(kept).not.toHaveBeenCalled();
    cancel();
    vi.advanceTimersByTime(1);
    expect([kept.mock.calls.length, cancelled.mock.calls.length]).toEqual([1, 0]);
  });

  test('a time that has passed is no wait', () => {
    const spy = vi.spyOn(globalThis, 'setTimeout');
    onTestFinished(() => spy.mockRestore());
    systemClock.schedule(-0.1, () => undefined)();
    expect(spy.mock.calls[0]?.[1]).toBe(0);
  });

  test('a timer keeps the process alive until it fired: an agent that only waits must not end', () => {
    const timers = (): number =>
      process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = timers();
    const cancel = systemClock.schedule(60_000, () => undefined);
    expect(timers()).toBe(before + 1);
    cancel();
    expect(timers()).toBe(before);
  });
});

describe('sleep', () => {
  test('ends after its time, and not before', async () => {
    const clock = new FakeClock();
    let over = false;
    const slept = sleep(clock, 1000).then(() => {
      over = true;
    });
    await clock.advance(999);
    expect(over).toBe(false);
    await clock.advance(1);
    await slept;
    expect(clock.pending).toBe(0);
  });

  test('ends with its signal, gives its reason, and leaves no timer', async () => {
    const clock = new FakeClock();
    const controller = new AbortController();
    const slept = sleep(clock, 1000, controller.signal);
    const reason = new Error('stop');
    controller.abort(reason);
    await expect(slept).rejects.toBe(reason);
    expect(clock.pending).toBe(0);
  });

  test('does not begin under a signal that has aborted', async () => {
    const clock = new FakeClock();
    await expect(sleep(clock, 1000, AbortSignal.abort(new Error('stop')))).rejects.toThrow('stop');
    expect(clock.pending).toBe(0);
  });

  test('a reason that is no error becomes the cause of one', async () => {
    const controller = new AbortController();
    const slept = sleep(new FakeClock(), 1000, controller.signal);
    controller.abort('enough');
    await expect(slept).rejects.toMatchObject({ message: 'aborted', cause: 'enough' });
  });

  test('leaves nothing on its signal: one signal may outlive a million sleeps', async () => {
    const clock = new FakeClock();
    const { signal: abort } = new AbortController();
    const removed = vi.spyOn(abort, 'removeEventListener');
    const slept = sleep(clock, 10, abort);
    await clock.advance(10);
    await slept;
    await settle();
    expect(removed).toHaveBeenCalledTimes(1);
  });
});

test.each([
  [0, '1970-01-01T00:00:00Z', '1970-01-01T00:00:00.000000Z'],
  [Date.UTC(2026, 10, 20, 8, 5, 9, 7), '2026-11-20T08:05:09Z', '2026-11-20T08:05:09.007000Z'],
  [Date.UTC(2026, 11, 31, 23, 59, 59, 999), '2026-12-31T23:59:59Z', '2026-12-31T23:59:59.999000Z'],
])('%d is written in each form that somebody reads', (ms, seconds, micros) => {
  expect([rfc3339(ms), microTime(ms)]).toEqual([seconds, micros]);
});

test('a time is written as Date writes it', () => {
  const time = integer({ min: Date.UTC(1969), max: Date.UTC(10_001) });
  assert(
    property(time, (ms) => isoTime(ms) === new Date(ms).toISOString()),
    { numRuns: 10_000 },
  );
  for (let day = Date.UTC(1970); day < Date.UTC(2410); day += 86_400_000)
    if (isoTime(day) !== new Date(day).toISOString()) expect.unreachable(isoTime(day));
  expect(() => isoTime(Number.NaN)).toThrow(RangeError);
});
