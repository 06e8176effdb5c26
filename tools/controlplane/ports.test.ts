/** Proves that control planes that start at once get ports of their own. */
import { expect, test } from 'vitest';
import { freePort } from './ports.ts';

test('nobody is given a port twice', async () => {
  const ports = await Promise.all(Array.from({ length: 500 }, freePort));
  expect(new Set(ports).size).toBe(ports.length);
});
