/**
 * Tests that a download fails if the server sends an answer that does not fit the request. Otherwise "not modified"
 * would count as a placed bundle, and a "partial content" would make the agent send requests for ever.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { NEW } from '../agent/rig.ts';
import { startStubServer } from '../faults/stub-server.ts';
import { startNode, useCluster } from './rig.ts';

useCluster();

test.each([
  ['airgapupdate', 304, {}],
  ['airgapupdate', 206, { 'content-range': 'bytes 0-0/1' }],
  ['airgapupdate', 416, { 'content-range': 'bytes */0' }],
  ['k0supdate', 304, {}],
  ['k0supdate', 206, { 'content-range': 'bytes 0-0/1' }],
])('%s: the answer %d fails the download at once', async (kind, code, headers) => {
  await using node = await startNode();
  let requests = 0;
  await using server = await startStubServer((_request, response) => {
    requests++;
    response.writeHead(code, headers).end(code === 206 ? 'x' : '');
  });
  node.startAgent();
  await node.send('/new', NEW, { kind, url: `${server.config.server}/bundle.tar` });
  await node.end();
  expect(node.statuses).toEqual(['Downloading', 'FailedDownload']);
  expect((await node.report())?.reason).toContain(`answered ${code}`);
  expect(requests).toBe(1);
  expect(await node.leftovers()).toEqual([]);
  expect(await readdir(join(node.host.dataDirectory, 'images')).catch(() => [])).toEqual([]);
});
