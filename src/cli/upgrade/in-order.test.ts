/** Tests what is said if only some of several objects could be written. */
import { expect, test } from 'vitest';
import { writeInOrder } from './in-order.ts';

const write = async (name: string): Promise<void> => {
  await Promise.resolve();
  if (name === 'bad') throw new Error('it was refused');
};

test('a failure after the first write names what is written and what is not', async () => {
  const all = writeInOrder(['a', 'b', 'bad', 'c'], (name) => `Plan ${name}`, write);
  await expect(all).rejects.toThrow(
    'Plan a, Plan b are written, and Plan bad is not: it was refused',
  );
});

test('a failure of the first write is told as it is, because nothing is written', async () => {
  const all = writeInOrder(['bad', 'a'], (name) => `Plan ${name}`, write);
  await expect(all).rejects.toThrow(/^it was refused$/);
});
