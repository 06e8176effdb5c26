/**
 * Tests that the agent does not use a data directory of the service that belongs to another user or is a link.
 * Otherwise root would write where that user wants.
 */
import { chown, lchown, mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { NEW, type Rig } from '../agent/rig.ts';
import { attackAsNobody, NOBODY, startNode, useCluster } from './rig.ts';

useCluster();

type Trap = (images: string, victim: string, data: string) => Promise<void>;

const traps: [string, Trap][] = [
  ['the data directory', async (_images, _victim, data) => await chown(data, NOBODY, NOBODY)],
  [
    'the images directory',
    async (images) => {
      await mkdir(images);
      await chown(images, NOBODY, NOBODY);
    },
  ],
  [
    'a link to a directory of root',
    async (images, victim) => {
      await symlink(victim, images);
      await lchown(images, NOBODY, NOBODY);
    },
  ],
];

async function expectRefused(node: Rig): Promise<void> {
  await node.send('/new', NEW, { kind: 'airgapupdate' });
  await node.end();
  expect(node.statuses).toEqual(['Downloading', 'FailedDownload']);
  expect((await node.report())?.reason).toContain(
    `belongs to user ${NOBODY}, but must belong to root`,
  );
  expect(node.server.requests).toEqual([]);
}

attackAsNobody.each(traps)(
  '%s belongs to another user: nothing is fetched or written',
  async (_name, set) => {
    await using node = await startNode();
    const victim = await mkdtemp(join(tmpdir(), 'refit-victim-'));
    const { dataDirectory } = node.host;
    await set(join(dataDirectory, 'images'), victim, dataDirectory);
    const before = await readdir(dataDirectory);
    try {
      node.startAgent();
      await expectRefused(node);
      expect(await readdir(victim)).toEqual([]);
      expect(await readdir(dataDirectory)).toEqual(before);
    } finally {
      await rm(victim, { recursive: true });
    }
  },
);
