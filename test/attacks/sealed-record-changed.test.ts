/**
 * Tests that the staged binary is not installed if an attacker changes it, and also the record of its hash, between
 * download and swap.
 */
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { pathsIn, upgradePathsOf } from '../../src/agent/state/state-directory.ts';
import { decodeSignal, encodeSignal } from '../../src/signal/annotations.ts';
import { NEW, type Rig } from '../agent/rig.ts';
import { startNode, useCluster } from './rig.ts';

useCluster();

/** Sets the status, as a leader does that has drained the node. */
async function drainedByLeader(node: Rig): Promise<void> {
  const signal = decodeSignal((await node.object()).metadata.annotations);
  if (signal?.status === undefined) throw new Error('the node has no status');
  await node.annotate(
    encodeSignal({ ...signal, status: { ...signal.status, status: 'ApplyingUpdate' } }),
  );
}

/** Replaces the hash in the record with another hash. */
async function seal(node: Rig, sha256: string): Promise<void> {
  const { record } = pathsIn(node.host.stateDirectory);
  const sealed = JSON.parse(await readFile(record, 'utf8')) as Record<string, unknown>;
  const hashes = { sealed: sha256, ...('sha256' in sealed && { sha256 }) };
  await writeFile(record, JSON.stringify({ ...sealed, ...hashes }));
}

test.each([
  ['the binary, of a signal without a hash', false, false],
  ['the binary, of a signal with a hash', true, false],
  ['the binary and its record, of a signal with a hash', true, true],
])('%s: it is not installed', async (_name, isPinned, isResealed) => {
  await using node = await startNode({ policy: { cordoning: 'leader' } });
  const before = await node.installed();
  const flags = ['--unverified-downloads', 'allow'];
  const agent = node.startAgent(...flags);
  await node.send('/new', NEW, isPinned ? {} : { sha256: undefined });
  await node.until(() => expect(node.statuses.at(-1)).toBe('Cordoning'));
  await agent.stop('SIGKILL');
  const { staged } = upgradePathsOf(node.host.binary);
  const planted = `${await readFile(staged, 'utf8')}// planted\n`;
  await writeFile(staged, planted);
  if (isResealed) await seal(node, createHash('sha256').update(planted).digest('hex'));
  node.startAgent(...flags);
  await drainedByLeader(node);
  await node.end();
  expect(node.statuses.at(-1)).toBe('Failed');
  expect((await node.report())?.reason).toContain('the download changed on the disk');
  expect(await node.installed()).toBe(before);
});
