/** Tests that flags of a demonstration that exclude each other are refused before anything starts. */
import { expect, test } from 'vitest';
import { autopilot } from './autopilot.ts';
import type { Ground } from './demonstration.ts';

test.each([
  [{ updates: true, fail: 'worker2' }, '--updates cannot be combined with --fail'],
  [{ canary: true, fail: 'worker2' }, '--canary cannot be combined with --fail'],
  [{ canary: true, updates: true }, '--canary cannot be combined with --updates'],
  [{ 'bad-release': true, canary: true }, '--canary cannot be combined with --bad-release'],
])('%o: refused, because each is a story of its own', async (flags, message) => {
  await expect(autopilot.run(flags, {} as Ground)).rejects.toThrow(message);
});
