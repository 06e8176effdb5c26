/**
 * Tests that a bundle with the name of a foreign file does not replace that file. An attacker between host and server
 * could choose such a name.
 */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { NEW } from '../agent/rig.ts';
import { startStubServer } from '../faults/stub-server.ts';
import { startNode, useCluster } from './rig.ts';

useCluster();

test('the file of somebody else stays, and the report says why', async () => {
  await using node = await startNode();
  const payload = await readFile(join(node.host.directory, '..', 'new'));
  await using server = await startStubServer((_request, response) => {
    response.setHeader('content-disposition', 'attachment; filename="team.tar"').end(payload);
  });
  const images = join(node.host.dataDirectory, 'images');
  await mkdir(images, { recursive: true });
  await writeFile(join(images, 'team.tar'), 'theirs');
  node.startAgent();
  await node.send('/new', NEW, { kind: 'airgapupdate', url: `${server.config.server}/bundle.tar` });
  await node.end();
  expect(node.statuses).toEqual(['Downloading', 'FailedDownload']);
  expect((await node.report())?.reason).toContain(
    'is team.tar, but another file on this host has the same name',
  );
  expect(await readFile(join(images, 'team.tar'), 'utf8')).toBe('theirs');
  expect(await readdir(images)).toEqual(['team.tar']);
});
