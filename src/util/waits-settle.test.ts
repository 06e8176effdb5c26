/** Tests that a failure is passed on, but not before the other promises have settled. */
import { expect, test } from 'vitest';
import { settleAll } from './waits.ts';

test('the results, in order', async () => {
  expect(await settleAll([Promise.resolve(1), Promise.resolve(2)])).toEqual([1, 2]);
  expect(await settleAll([])).toEqual([]);
});

test('the first error, once all have ended', async () => {
  const slow = Promise.withResolvers<void>();
  let isOver = false;
  const failing = [
    Promise.reject(new Error('one')),
    slow.promise,
    Promise.reject(new Error('two')),
  ];
  const all = settleAll(failing).finally(() => {
    isOver = true;
  });
  const told = expect(all).rejects.toThrow('one');
  await new Promise<void>((resolve) => setImmediate(resolve));
  expect(isOver).toBe(false);
  slow.resolve();
  await told;
});
