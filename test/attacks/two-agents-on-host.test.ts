/**
 * Tests that a second agent with another state directory does not start on the same host. Otherwise both would swap and
 * restart the same service.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startNode, useCluster } from './rig.ts';

useCluster();

test('a host has one agent, whatever its state directory', async () => {
  await using node = await startNode();
  const first = node.startAgent();
  await node.until(() => expect(first.log.join('\n')).toContain('agent started'));
  const other = join(node.host.directory, 'other-state');
  await mkdir(other);
  const second = node.startAgent('--state-dir', other);
  expect(await second.exited).not.toBe(0);
  expect(second.log.join('\n')).toContain(`another agent (PID ${first.pid})`);
});
