/** Tests that flags of a demonstration that exclude each other are refused before anything starts. */
import { expect, test } from 'vitest';
import { autopilot } from './autopilot.ts';
import type { Ground } from './demonstration.ts';

test.each([
  [{ updates: true, fail: 'worker2' }, '--updates does not go with --fail'],
  [{ canary: true, fail: 'worker2' }, '--canary does not go with --fail'],
  [{ canary: true, updates: true }, '--canary does not go with --updates'],
  [{ 'bad-release': true, canary: true }, '--canary does not go with --bad-release'],
])('%o: refused, because each is a story of its own', async (flags, message) => {
  await expect(autopilot.run(flags, {} as Ground)).rejects.toThrow(message);
});
