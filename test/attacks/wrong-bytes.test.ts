/** The download server, or whoever sits before it, sends other bytes than the plan names: nothing of them is kept or run. */
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
