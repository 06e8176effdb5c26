/**
 * Tests that only the wanted bytes run if an attacker changes the partial download of a killed agent, or sends other
 * bytes after an interruption.
 */
import { open, stat, writeFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { upgradePathsOf } from '../../src/agent/state/state-directory.ts';
import { NEW, type Rig } from '../agent/rig.ts';
import { startNode, useCluster } from './rig.ts';

useCluster();

const MIB = 1024 * 1024;
const BYTES = 7 * MIB;

/** A node whose agent was killed with more than 5 MiB of the payload on the disk. */
async function killedInDownload(): Promise<{ node: Rig; part: string; staged: string }> {
  const node = await startNode({ bytes: BYTES, faults: [{ paceMs: 60 }] });
  const { part, staged } = upgradePathsOf(node.host.binary);
  const agent = node.startAgent();
  await node.send('/new', NEW);
  await node.until(async () => expect((await stat(part)).size).toBeGreaterThan(5 * MIB));
  await agent.stop('SIGKILL');
  return { node, part, staged };
}

async function expectWantedBytes(node: Rig): Promise<void> {
  node.startAgent();
  await node.end();
  expect(node.statuses.at(-1)).toBe('Completed');
  expect(await node.installed()).toBe(node.server.sha256('/new'));
}

test.each([0, 4 * MIB + 512 * 1024])(
  'a byte of the part changed at %i costs one more download',
  async (position) => {
    const { node, part } = await killedInDownload();
    await using _ = node;
    const handle = await open(part, 'r+');
    await handle.write(Buffer.from('!'), 0, 1, position);
    await handle.close();
    await expectWantedBytes(node);
    expect(node.server.requests.map(({ from }) => from > 0)).toEqual([false, true, false]);
  },
);

test('a file in the place of the staged binary is not taken for it', async () => {
  const { node, staged } = await killedInDownload();
  await using _ = node;
  await writeFile(staged, '#!/bin/sh\necho v1.36.3+k0s.2\n', { mode: 0o755 });
  await expectWantedBytes(node);
});

test('after a break the server continues with other bytes than the hash names', async () => {
  await using node = await startNode({ bytes: BYTES, faults: [{ resetAfterBytes: 5 * MIB }] });
  const before = await node.installed();
  node.startAgent();
  await node.send('/new', NEW, { sha256: node.server.sha256('/next') });
  await node.end();
  expect(node.statuses).toEqual(['Downloading', 'FailedDownload']);
  expect(node.server.requests.map(({ from }) => from > 0)).toEqual([false, true, false]);
  expect(await node.installed()).toBe(before);
  expect(await node.leftovers()).toEqual([]);
});
