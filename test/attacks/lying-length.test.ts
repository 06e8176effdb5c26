/**
 * Tests that a download fails with a reason if the server announces a length that differs from the length that it
 * sends. Nothing of the download is left.
 */
import { readFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { NEW } from '../agent/rig.ts';
import { startStubServer } from '../faults/stub-server.ts';
import { startNode, useCluster } from './rig.ts';

useCluster();

type Lie = (response: ServerResponse, payload: Buffer) => void;

function announce(length: string, send: Lie): Lie {
  return (response, payload) => {
    response.writeHead(200, { 'content-length': length });
    send(response, payload);
  };
}

const all: Lie = (response, payload) => void response.write(payload, () => response.socket?.end());

/**
 * Sends the remaining bytes directly to the socket, because HTTP does not let a server send more than the announced
 * length.
 */
const tooMuch: Lie = (response, payload) => {
  response.write(payload.subarray(0, 1000), () => response.socket?.end(payload.subarray(1000)));
};

test.each<[string, Lie, string]>([
  ['less than it sends', announce('1000', tooMuch), 'sha256 of the'],
  [
    'more than a download may have',
    announce('9007199254740993', all),
    'the download is bigger than',
  ],
  ['more than the disk has', announce('900719925474', all), 'the whole file system has only'],
  ['more than it sends', announce('10000000', all), 'the download took too long'],
  ['nothing, and never ends', (response) => void response.write('x'), 'the download took too long'],
])('a server that announces %s', async (_name, lie, reason) => {
  await using node = await startNode({
    flags: ['--max-download-bytes', '9007199254740991', '--download-timeout', '3s'],
  });
  const payload = await readFile(join(node.host.directory, '..', 'new'));
  await using server = await startStubServer((_request, response) => lie(response, payload));
  const before = await node.installed();
  node.startAgent();
  await node.send('/new', NEW, { url: server.config.server });
  await node.end();
  expect(node.statuses).toEqual(['Downloading', 'FailedDownload']);
  expect((await node.report())?.reason).toContain(reason);
  expect(await node.installed()).toBe(before);
  expect(await node.leftovers()).toEqual([]);
});
