import { expect, test } from 'vitest';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { aborted } from './waits.ts';
import { within } from './within.ts';

const late = new Error('it is late');

test('work that ends in time settles as it does by itself, and leaves no timer', async () => {
  const clock = new FakeClock();
  expect(await within(clock, { ms: 10, late }, async () => await Promise.resolve(1))).toBe(1);
  const failing = within(
    clock,
    { ms: 10, late },
    async () => await Promise.reject(new Error('no')),
  );
  await expect(failing).rejects.toThrow('no');
  expect(clock.pending).toBe(0);
});

test.each<[string, (abort: AbortSignal) => Promise<void>]>([
  ['ends with its signal', aborted],
  [
    'fails with its signal',
    async (abort) => await aborted(abort).then(() => Promise.reject(new Error('cut off'))),
  ],
  ['ignores its signal', async () => await new Promise(() => undefined)],
])('work that %s rejects with the error for late work', async (what, work) => {
  const clock = new FakeClock();
  const signals: AbortSignal[] = [];
  const limited = within(clock, { ms: 10, late }, async (abort) => {
    signals.push(abort);
    await work(abort);
  });
  const outcome = expect(limited, what).rejects.toBe(late);
  await clock.advance(10);
  await outcome;
  expect(signals.map((signal) => signal.aborted)).toEqual([true]);
});

test('the signal of the work aborts with the one that stops it', async () => {
  const stop = new AbortController();
  const limited = within(new FakeClock(), { ms: 10, late, stop: stop.signal }, aborted);
  stop.abort();
  await expect(limited).resolves.toBeUndefined();
});
