/** Tests that a loop works on one item after the other, and waits twice as long after each failure. */
import { expect, test } from 'vitest';
import { silentLogger } from '../../../../src/util/log.ts';
import { FakeClock } from '../../clock/fake-clock.ts';
import { WorkLoop } from './work-loop.ts';

test('after failures an item comes again after 5, 10, 20 ms and so on, until it succeeds', async () => {
  const clock = new FakeClock();
  const tried: number[] = [];
  const reconcile = async (): Promise<undefined> => {
    tried.push(clock.monotonic());
    if (tried.length < 6) await Promise.reject(new Error('conflict'));
  };
  const loop = new WorkLoop(reconcile, new AbortController().signal, silentLogger, clock);
  loop.add('a');
  await clock.advance(10_000);
  expect(tried).toEqual([0, 5, 15, 35, 75, 155]);
  loop.add('a');
  await clock.advance(0);
  expect(tried.at(-1)).toBe(10_000);
});

test('what is asked for comes again, and no sooner', async () => {
  const clock = new FakeClock();
  const tried: number[] = [];
  const reconcile = async (): Promise<number | undefined> => {
    await Promise.resolve();
    tried.push(clock.monotonic());
    return tried.length < 3 ? 5_000 : undefined;
  };
  const loop = new WorkLoop(reconcile, new AbortController().signal, silentLogger, clock);
  loop.add('a');
  await clock.advance(60_000);
  expect(tried).toEqual([0, 5_000, 10_000]);
});

test('one at a time: an item that comes while it is worked on is worked on once more, after the others', async () => {
  const clock = new FakeClock();
  const worked: string[] = [];
  const first = Promise.withResolvers<undefined>();
  const reconcile = async (name: string): Promise<undefined> => {
    worked.push(name);
    if (worked.length === 1) await first.promise;
  };
  const loop = new WorkLoop(reconcile, new AbortController().signal, silentLogger, clock);
  for (const name of ['a', 'b', 'b']) loop.add(name);
  await clock.advance(1);
  for (const name of ['a', 'a']) loop.add(name);
  await clock.advance(1);
  expect(worked).toEqual(['a']);
  first.resolve(undefined);
  await loop.settled();
  expect(worked).toEqual(['a', 'b', 'a']);
});

test('nothing begins after the end, and what waited is forgotten', async () => {
  const clock = new FakeClock();
  const stop = new AbortController();
  const worked: string[] = [];
  const reconcile = async (name: string): Promise<number> => {
    await Promise.resolve();
    worked.push(name);
    return 1_000;
  };
  const loop = new WorkLoop(reconcile, stop.signal, silentLogger, clock);
  loop.add('a');
  await clock.advance(1);
  stop.abort();
  loop.add('b');
  await clock.advance(60_000);
  expect(worked).toEqual(['a']);
  expect(clock.pending).toBe(0);
});
