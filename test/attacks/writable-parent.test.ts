/** The service's binary lies where others may write: they could put their own file in its place after any check. */
import { chmod } from 'node:fs/promises';
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { NEW } from '../agent/rig.ts';
import { startNode, useCluster } from './rig.ts';

useCluster();

test.each([
  ['its directory', 0o777],
  ['its directory, though it is sticky', 0o1777],
])('%s is open to others: nothing is downloaded, swapped or restarted', async (_name, mode) => {
  await using node = await startNode();
  const before = await node.installed();
  await chmod(dirname(node.host.binary), mode);
  const agent = node.startAgent();
  await node.send('/new', NEW);
  await node.until(() => expect(agent.log.join('\n')).toContain('others may write to'));
  expect(node.server.requests).toEqual([]);
  expect(await node.installed()).toBe(before);
  expect(node.host.starts).toBe(1);
});

test('the binary itself is open to others', async () => {
  await using node = await startNode();
  await chmod(node.host.binary, 0o777);
  const agent = node.startAgent();
  await node.send('/new', NEW);
  await node.until(() => expect(agent.log.join('\n')).toContain(`others may write to ${node.host.binary}`));
  expect(node.server.requests).toEqual([]);
});
