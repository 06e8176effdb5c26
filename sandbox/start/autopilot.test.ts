/** Proves that flags of a demonstration that cannot go together are refused before anything starts. */
import { expect, test } from 'vitest';
import { autopilot } from './autopilot.ts';
import type { Ground } from './demonstration.ts';

test('a node cannot fail in the demonstration of channels', async () => {
  const flags = { updates: true, fail: 'worker2' };
  await expect(autopilot.run(flags, {} as Ground)).rejects.toThrow(
    '--fail does not go with --updates',
  );
});

test.each([
  [{ canary: true, fail: 'worker2' }, '--canary does not go with --fail'],
  [{ canary: true, updates: true }, '--canary does not go with --updates'],
])('%o: refused, because each breaks its own way', async (flags, message) => {
  await expect(autopilot.run(flags, {} as Ground)).rejects.toThrow(message);
});
