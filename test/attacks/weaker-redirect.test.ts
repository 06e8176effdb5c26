/** Tests that the agent follows no redirect from https to plain http, where an attacker in the network can answer. */
import { expect, test } from 'vitest';
import { startHttpsMirror } from '../agent/https-mirror.ts';
import { NEW } from '../agent/rig.ts';
import { startNode, useCluster } from './rig.ts';

useCluster();

test.each([
  ['refused', [], 'FailedDownload'],
  ['followed with the flag', ['--allow-insecure-redirect'], 'Completed'],
])('a redirect from https to plain http is %s', async (_name, flags, end) => {
  let location = '';
  await using mirror = await startHttpsMirror((_request, response) =>
    response.writeHead(302, { location }).end(),
  );
  await using node = await startNode({ environment: mirror.trust, flags });
  location = `${node.server.url}/new`;
  node.startAgent();
  await node.send('/new', NEW, { url: `${mirror.server.config.server}/new` });
  await node.end();
  expect(node.statuses.at(-1)).toBe(end);
  expect(node.server.requests).toHaveLength(end === 'Completed' ? 1 : 0);
});
