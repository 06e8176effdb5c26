/**
 * Tests that a staged binary that changes after the check of its hash never becomes the binary of the service: neither
 * before the trial run nor before the swap.
 */
import { readFile, stat, utimes, writeFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { upgradePathsOf } from '../../src/agent/state/state-directory.ts';
import { decodeSignal, encodeSignal } from '../../src/signal/annotations.ts';
import { NEW } from '../agent/rig.ts';
import { startNode, useCluster } from './rig.ts';

useCluster();

/** Changes the file, but keeps its size and its modification time. */
async function disguise(staged: string): Promise<void> {
  const { atime, mtime } = await stat(staged);
  const text = await readFile(staged, 'utf8');
  await writeFile(staged, `${text.slice(0, -2)}!\n`);
  await utimes(staged, atime, mtime);
}

test.each([
  ['a smaller file', async (staged: string) => await writeFile(staged, '#!/bin/sh\nexit 0\n')],
  ['one of the same size and time', disguise],
])(
  'other bytes than those that were hashed never become the service: %s',
  async (_name, change) => {
    // If a leader drains the node, the attacker has enough time between the trial run and the swap.
    await using node = await startNode({ policy: { cordoning: 'leader' } });
    const before = await node.installed();
    const { staged } = upgradePathsOf(node.host.binary);
    node.startAgent();
    await node.send('/new', NEW);
    await node.until(() => expect(node.statuses).toContain('Cordoning'));
    await change(staged);
    const signal = decodeSignal((await node.object()).metadata.annotations);
    if (signal === undefined) throw new Error('no signal');
    await node.annotate(
      encodeSignal({ ...signal, status: { status: 'ApplyingUpdate', timestamp: node.created } }),
    );
    // If the agent swaps the file in, the test must not wait until the service has failed to start.
    let installed = before;
    await node.until(async () => {
      installed = await node.installed();
      if (installed === before) expect(['Failed', 'Completed']).toContain(node.statuses.at(-1));
    });
    expect(installed).toBe(before);
    await node.end();
    expect(node.statuses.at(-1)).toBe('Failed');
    expect((await node.report())?.reason).toContain('the download changed on the disk');
    expect(await node.installed()).toBe(before);
  },
);

test('nobody else can look into the directory where it is staged', async () => {
  await using node = await startNode({ bytes: 64_000, faults: [{ paceMs: 100 }] });
  node.startAgent();
  await node.send('/new', NEW);
  const { staging } = upgradePathsOf(node.host.binary);
  // The agent creates the directory with its final mode, so a wrong mode needs no wait.
  let mode = 0;
  await node.until(async () => {
    ({ mode } = await stat(staging));
  });
  expect(mode & 0o777).toBe(0o700);
});
