/**
 * Tests that a user without rights finds no secrets in the files of the agent. The URL of a download may contain a
 * signature.
 */
import { execFile } from 'node:child_process';
import { chmod } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { NEW } from '../agent/rig.ts';
import { attackAsNobody, NOBODY, startNode, useCluster } from './rig.ts';

useCluster();

attackAsNobody('nobody else can read what the agent writes', async () => {
  await using node = await startNode({ bytes: 64_000, faults: [{ paceMs: 100 }] });
  await chmod(dirname(node.host.directory), 0o755);
  node.startAgent();
  await node.send('/new', NEW, { url: `${node.server.url}/new?signature=secret` });
  await node.until(async () => expect(await node.journal()).toContain('signature=secret'));
  const script =
    'find "$1" -type f; find "$1" -type f -exec grep -l signature {} + 2>/dev/null; true';
  const { stdout } = await promisify(execFile)('sh', ['-c', script, 'sh', node.host.directory], {
    uid: NOBODY,
  });
  const files = stdout.split('\n');
  expect(files.some((path) => path.endsWith('/bin/k0s'))).toBe(true);
  expect(files.filter((path, at) => path !== '' && files.indexOf(path) !== at)).toEqual([]);
});
