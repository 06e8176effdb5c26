/** Tests when a worker gets a key: once, in order, and never while another worker has it. */
import { array, assert, asyncProperty, constantFrom, nat, record } from 'fast-check';
import { expect, test } from 'vitest';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { WorkQueue } from './queue.ts';

function rig(): {
  queue: WorkQueue;
  clock: FakeClock;
  ready: () => Promise<string[]>;
} {
  const clock = new FakeClock();
  const queue = new WorkQueue({ clock, random: () => 1 });
  /** Returns all keys that are due now, and calls `done` for each key immediately. */
  const ready = async (): Promise<string[]> => {
    const keys: string[] = [];
    while (queue.depth() > 0) {
      const key = (await queue.next()) ?? '';
      keys.push(key);
      queue.done(key);
    }
    return keys;
  };
  return { queue, clock, ready };
}

test('a key that is added twice comes once', async () => {
  const { queue, ready } = rig();
  for (const key of ['a', 'b', 'a']) queue.add(key);
  expect(await ready()).toEqual(['a', 'b']);
});

test('a key that is added while at work comes again after it is done, not before', async () => {
  const { queue, ready } = rig();
  queue.add('a');
  const key = await queue.next();
  queue.add('a');
  queue.add('b');
  expect(await queue.next()).toBe('b');
  const waiting = queue.next();
  queue.done('a');
  expect([key, await waiting]).toEqual(['a', 'a']);
  queue.done('a');
  queue.done('b');
  expect(await ready()).toEqual([]);
});

test('a key that rests comes once when its rest is over, however often it is added until then', async () => {
  const { queue, clock, ready } = rig();
  queue.add('a');
  await queue.next();
  queue.add('a');
  queue.done('a', 1_000);
  queue.add('a');
  queue.addAfter('a', 10);
  await clock.advance(999);
  expect([queue.depth(), await ready()]).toEqual([0, []]);
  await clock.advance(1);
  expect(await ready()).toEqual(['a']);
  queue.add('a');
  expect(await ready()).toEqual(['a']);
});

test('a rest in which nothing happens brings nothing, and holds up no other key', async () => {
  const { queue, clock, ready } = rig();
  queue.add('a');
  await queue.next();
  queue.done('a', 1_000);
  queue.add('b');
  expect(await ready()).toEqual(['b']);
  await clock.advance(5_000);
  expect(await ready()).toEqual([]);
});

test('of several delays for one key the earliest counts, and it comes once', async () => {
  const { queue, clock, ready } = rig();
  queue.addAfter('a', 3_000);
  queue.addAfter('a', 1_000);
  queue.addAfter('a', 2_000);
  queue.addAfter('b', 500);
  await clock.advance(999);
  expect(await ready()).toEqual(['b']);
  await clock.advance(1);
  expect(await ready()).toEqual(['a']);
  await clock.advance(10_000);
  expect(await ready()).toEqual([]);
  expect(clock.pending).toBe(0);
});

test('a key waits longer with each retry, and as at first after it was forgotten', async () => {
  const { queue, clock, ready } = rig();
  const waits: number[] = [];
  for (let attempt = 0; attempt < 14; attempt++) {
    if (attempt === 13) queue.forget('a');
    queue.retry('a');
    const from = clock.monotonic();
    while ((await ready()).length === 0) await clock.advance(100);
    waits.push(clock.monotonic() - from);
  }
  expect(waits.slice(0, 4)).toEqual([100, 200, 400, 800]);
  expect(waits.slice(10)).toEqual([102_400, 120_000, 120_000, 100]);
});

test('the retries of all keys together are limited', async () => {
  const { queue, clock, ready } = rig();
  for (let index = 0; index < 131; index++) queue.retry(`k${index}`);
  await clock.advance(100);
  expect(await ready()).toHaveLength(101);
  await clock.advance(1_000);
  expect(await ready()).toHaveLength(10);
  await clock.advance(2_000);
  expect(await ready()).toHaveLength(20);
});

test('who waits gets the next key at once', async () => {
  const { queue } = rig();
  const waiting = Promise.all([queue.next(), queue.next()]);
  queue.add('a');
  queue.add('b');
  expect(await waiting).toEqual(['a', 'b']);
});

test('closed, it gives and takes nothing more', async () => {
  const { queue, clock } = rig();
  queue.addAfter('late', 10);
  queue.add('a');
  await queue.next();
  const waiting = queue.next();
  queue.add('a');
  queue.close();
  queue.add('b');
  queue.addAfter('c', 1);
  queue.done('a');
  await clock.advance(100);
  expect([await waiting, await queue.next(), queue.depth()]).toEqual([undefined, undefined, 0]);
});

test('whatever is added in whatever order: no key is at work twice at once, and after each wish it comes', async () => {
  const step = record({
    what: constantFrom('add', 'addAfter', 'retry', 'wait'),
    key: constantFrom('a', 'b', 'c'),
    ms: nat(500),
  });
  await assert(
    asyncProperty(
      array(step, { maxLength: 60 }),
      array(nat(300), { minLength: 1 }),
      async (steps, efforts) => {
        const { queue, clock } = rig();
        const working = new Set<string>();
        const wished = new Map<string, number>();
        const begun = new Map<string, number>();
        let turn = 0;
        const work = async (): Promise<void> => {
          for (let key = await queue.next(); key !== undefined; key = await queue.next()) {
            expect(working.has(key)).toBe(false);
            working.add(key);
            begun.set(key, ++turn);
            const effort = efforts[turn % efforts.length] ?? 0;
            await new Promise<void>((resolve) => void clock.schedule(effort, resolve));
            working.delete(key);
            queue.done(key);
          }
        };
        const workers = [work(), work()];
        for (const { what, key, ms } of steps) {
          if (what !== 'wait') wished.set(key, ++turn);
          if (what === 'wait') await clock.advance(ms);
          else if (what === 'addAfter') queue.addAfter(key, ms);
          else queue[what](key);
        }
        await clock.advance(10_000_000);
        queue.close();
        await Promise.all(workers);
        for (const [key, at] of wished) expect(begun.get(key)).toBeGreaterThan(at);
      },
    ),
    { numRuns: 200 },
  );
});
