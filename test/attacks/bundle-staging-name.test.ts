/**
 * Tests that a bundle may not have the name of the file for partial downloads. An agent would report `Completed`, and
 * then remove the bundle together with its leftovers.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { NEW, type Rig } from '../agent/rig.ts';
import { startStubServer } from '../faults/stub-server.ts';
import { startNode, useCluster } from './rig.ts';

useCluster();

const PARTIAL = '.refit-airgap.part';

async function expectRefused(node: Rig, url: string): Promise<void> {
  await node.send('/new', NEW, { kind: 'airgapupdate', url });
  await node.end();
  expect(node.statuses).toEqual(['Downloading', 'FailedDownload']);
  expect((await node.report())?.reason).toContain(`is ${PARTIAL}`);
  expect(await readdir(join(node.host.dataDirectory, 'images'))).toEqual([]);
  // The host already had `worker-profile.yaml`, a file of k0s.
  expect((await readdir(node.host.dataDirectory)).toSorted()).toEqual([
    'images',
    'worker-profile.yaml',
  ]);
}

test.each([`/a/${PARTIAL}`, '/a/%2Erefit-airgap%2Epart', '/named'])(
  '%s is refused, and nothing is left',
  async (path) => {
    await using node = await startNode();
    await using server = await startStubServer((_request, response) => {
      if (path === '/named')
        response.setHeader('content-disposition', `attachment; filename="${PARTIAL}"`);
      response.end('a bundle');
    });
    node.startAgent();
    await expectRefused(node, server.config.server + path);
  },
);
