/**
 * Tests that an agent reports an error and ends if its supervisor allows it too few file descriptors. Without this
 * check, the agent would hang without a message.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { agentArguments } from '../../sandbox/hosts/host.ts';
import { REFIT } from '../../sandbox/refit.ts';
import { startNode, useCluster } from './rig.ts';

useCluster();

test.each([32, 64, 127])('with %i files the agent ends with one clear error', async (most) => {
  await using node = await startNode();
  const script = `ulimit -n ${most}; exec "$@"`;
  const args = [process.execPath, REFIT, 'agent', ...agentArguments(node.host, '/nowhere')];
  const child = spawn('sh', ['-c', script, 'sh', ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
  const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'close')]);
  expect(said).toContain(
    `REFIT_AGENT: this process may open only ${most} files, and the agent needs 128`,
  );
  expect(said.trim().split('\n')).toHaveLength(1);
  expect(code).toBe(1);
});
