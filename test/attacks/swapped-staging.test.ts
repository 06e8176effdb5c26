/** The staged binary changes after its hash was checked: before the trial run, and before it replaces the service's binary. */
import { readFile, stat, utimes, writeFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { upgradePathsOf } from '../../src/agent/state/state-directory.ts';
import { decodeSignal, encodeSignal } from '../../src/signal/annotations.ts';
import { NEW } from '../agent/rig.ts';
import { startNode, useCluster } from './rig.ts';

useCluster();

/** With the size and the time of the file that was tried out. */
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
    // A leader that drains leaves the time between trial run and swap.
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
  await node.until(async () => expect((await stat(staging)).mode & 0o777).toBe(0o700));
});
