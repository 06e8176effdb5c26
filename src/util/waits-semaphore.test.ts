/** Tests that a semaphore keeps its bound and its order. */
import { expect, test } from 'vitest';
import { semaphore } from './waits.ts';

test('no more than the places there are work at a time, in the order in which they came', async () => {
  const within = semaphore(2);
  const log: string[] = [];
  const ends = new Map<string, () => void>();
  const work = async (name: string): Promise<void> =>
    await within(async () => {
      log.push(`begin ${name}`);
      await new Promise<void>((resolve) => ends.set(name, resolve));
      log.push(`end ${name}`);
    });
  const all = Promise.all(['a', 'b', 'c', 'd'].map(work));
  for (const name of ['b', 'a', 'c', 'd']) {
    await expect.poll(() => ends.has(name)).toBe(true);
    ends.get(name)?.();
  }
  await all;
  expect(log.filter((line) => line.startsWith('begin'))).toEqual([
    'begin a',
    'begin b',
    'begin c',
    'begin d',
  ]);
  expect(log.slice(0, 4)).toEqual(['begin a', 'begin b', 'end b', 'begin c']);
});

test('who fails gives the place back', async () => {
  const within = semaphore(1);
  const failing = within(async () => await Promise.reject(new Error('no')));
  const next = within(async () => await Promise.resolve('yes'));
  await expect(failing).rejects.toThrow('no');
  expect(await next).toBe('yes');
  expect(await within(async () => await Promise.resolve('again'))).toBe('again');
});
