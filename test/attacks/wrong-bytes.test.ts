/**
 * Tests that the agent neither keeps nor runs bytes that differ from the hash of the plan. The download server, or a
 * proxy before it, may send them.
 */
import { expect, test } from 'vitest';
import { NEW } from '../agent/rig.ts';
import { startNode, useCluster } from './rig.ts';

useCluster();

test('other bytes than the hash names are refused, and leave nothing', async () => {
  await using node = await startNode();
  const before = await node.installed();
  node.startAgent();
  await node.send('/new', NEW, { sha256: node.server.sha256('/next') });
  await node.end();
  expect(node.statuses).toEqual(['Downloading', 'FailedDownload']);
  expect((await node.report())?.reason).toContain('sha256 of the download is');
  expect(await node.installed()).toBe(before);
  expect(await node.leftovers()).toEqual([]);
});
