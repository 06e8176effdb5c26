/**
 * Tests that a reserve stays free if a download server or another process fills the disk of the node. The agent
 * continues when there is space again.
 */
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'vitest';
import { decodeSignal, encodeSignal } from '../../src/signal/annotations.ts';
import { NEW, type Rig } from '../agent/rig.ts';
import { SmallDisk } from '../faults/disk/small-disk.ts';
import { attackOnDisk, startNode, useCluster } from './rig.ts';

useCluster();

const MIB = 1024 * 1024;
const RESERVE = 24 * MIB;
const FULL = 'the disk is full: the agent removed the download, and tries again when there is room';

async function startOn(disk: SmallDisk): Promise<Rig> {
  return await startNode({
    hostDirectory: disk.path,
    bytes: 12 * MIB,
    flags: ['--disk-reserve', String(RESERVE), '--stall-timeout', '20s'],
  });
}

async function untilLogged(node: Rig, text: string): Promise<void> {
  await node.until(() => expect(node.agent?.log.join('\n')).toContain(text));
}

attackOnDisk(
  'a download for which there is no room is not begun, and goes on once there is room',
  async () => {
    await using disk = await SmallDisk.mount(96);
    await using node = await startOn(disk);
    node.startAgent();
    const empty = await disk.fill(RESERVE + 8 * MIB);
    const before = await disk.free();
    await node.send('/new', NEW);
    await untilLogged(node, FULL);
    expect(before - (await disk.free())).toBeLessThan(MIB);
    await empty();
    await node.end();
    expect(node.statuses.at(-1)).toBe('Completed');
  },
);

attackOnDisk('bytes without end or length leave the reserve, and are removed', async () => {
  await using disk = await SmallDisk.mount(96);
  await using node = await startOn(disk);
  let least = Infinity;
  let sent = 0;
  const flood = async (response: ServerResponse): Promise<void> => {
    const piece = Buffer.alloc(MIB, 7);
    let resume = (): void => undefined;
    response.on('drain', () => resume()).on('close', () => resume());
    while (!response.destroyed) {
      sent += piece.length;
      if (!response.write(piece))
        await new Promise<void>((resolve) => {
          resume = resolve;
        });
      least = Math.min(least, await disk.free());
    }
  };
  const endless = createServer((_request, response) => void flood(response)).listen(0, '127.0.0.1');
  await once(endless, 'listening');
  try {
    node.startAgent();
    const before = await disk.free();
    const url = `http://127.0.0.1:${(endless.address() as AddressInfo).port}/k0s`;
    await node.send('/new', NEW, { url });
    await untilLogged(node, FULL);
    expect(sent).toBeGreaterThan(before - RESERVE - 8 * MIB);
    // The difference allows for the bytes between two measurements, and for the bytes that the kernel still holds.
    expect(least).toBeGreaterThan(RESERVE - 8 * MIB);
    expect(before - (await disk.free())).toBeLessThan(MIB);
    expect(await readdir(join(disk.path, 'bin', '.k0s.refit'))).toEqual([]);
    await node.send('/new', NEW);
    await node.end();
    expect(node.statuses.at(-1)).toBe('Completed');
  } finally {
    endless.closeAllConnections();
    endless.close();
  }
});

attackOnDisk('on a disk without a free byte the journal is written all the same', async () => {
  await using disk = await SmallDisk.mount(96);
  await using node = await startOn(disk);
  const agent = node.startAgent();
  await untilLogged(node, 'agent started');
  await node.until(async () =>
    expect(await readdir(node.host.stateDirectory)).toContain('journal.json.spare'),
  );
  const empty = await disk.fill(0);
  await node.send('/new', NEW);
  await untilLogged(node, FULL);
  expect(await node.journal()).toContain('"started"');
  expect(node.statuses).toEqual(['Downloading']);
  // The next agent finds the journal while the disk is still full.
  await agent.stop('SIGKILL');
  node.startAgent();
  await untilLogged(node, FULL);
  await empty();
  await node.end();
  expect(node.statuses.at(-1)).toBe('Completed');
});

attackOnDisk(
  'on a disk without a free byte, what was fetched for a signal that was cancelled is removed',
  async () => {
    await using disk = await SmallDisk.mount(96);
    const options = {
      hostDirectory: disk.path,
      bytes: 12 * MIB,
      flags: ['--disk-reserve', String(RESERVE)],
    };
    await using node = await startNode({ ...options, policy: { cordoning: 'leader' } });
    node.startAgent();
    await node.send('/new', NEW);
    await node.until(() => expect(node.statuses.at(-1)).toBe('Cordoning'));
    const empty = await disk.fill(0);
    const signal = decodeSignal((await node.object()).metadata.annotations);
    expect(signal).toBeDefined();
    const status = { status: 'Failed', timestamp: node.created } as const;
    if (signal) await node.annotate(encodeSignal({ ...signal, status }));
    await node.until(async () => expect(await node.leftovers()).toEqual([]));
    await node.end();
    await empty();
  },
);

attackOnDisk(
  'an agent that starts on a disk without a free byte goes on with its update',
  async () => {
    await using disk = await SmallDisk.mount(96);
    const options = {
      hostDirectory: disk.path,
      bytes: 12 * MIB,
      flags: ['--disk-reserve', String(RESERVE)],
    };
    await using node = await startNode({ ...options, policy: { cordoning: 'leader' } });
    const agent = node.startAgent();
    await node.send('/new', NEW);
    await node.until(() => expect(node.statuses.at(-1)).toBe('Cordoning'));
    await agent.stop('SIGKILL');
    await disk.fill(0);
    node.startAgent();
    await untilLogged(node, '"msg":"resuming","node"');
  },
);
