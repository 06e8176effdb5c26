/** Tests that control planes that start one after the other get different ports, even before they listen on them. */
import { expect, test } from 'vitest';
import { freePort } from './ports.ts';

test('nobody is given a port twice', async () => {
  const ports = new Set<number>();
  for (let count = 0; count < 1000; count++) ports.add(await freePort());
  expect(ports.size).toBe(1000);
});
