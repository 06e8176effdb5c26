/**
 * Tests that the agent refuses a service binary in a directory that other users may write. These users could replace
 * the file after any check.
 */
import { readFileSync } from 'node:fs';
import { chmod, chown } from 'node:fs/promises';
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { NEW, type Rig } from '../agent/rig.ts';
import { testUnless } from '../support/left-out.ts';
import { attackAsNobody, NOBODY, startNode, useCluster } from './rig.ts';

useCluster();

/** Verifies that the upgrade of the node fails before any change, and that the reason contains `fix`. */
async function expectRefused(node: Rig, fix: string): Promise<void> {
  const before = await node.installed();
  node.startAgent();
  await node.send('/new', NEW);
  await node.end();
  expect(node.statuses).toEqual(['FailedDownload']);
  expect((await node.report())?.reason).toContain(`; run "${fix}"`);
  expect(node.server.requests).toEqual([]);
  expect(await node.installed()).toBe(before);
  expect(node.host.starts).toBe(1);
}

test.each([
  ['its directory', 0o777],
  ['its directory, though it is sticky', 0o1777],
])('%s is open to others: nothing is downloaded, swapped or restarted', async (_name, mode) => {
  await using node = await startNode();
  const directory = dirname(node.host.binary);
  await chmod(directory, mode);
  await expectRefused(node, `chmod go-w ${directory}`);
});

test('the binary itself is open to others', async () => {
  await using node = await startNode();
  await chmod(node.host.binary, 0o777);
  await expectRefused(node, `chmod go-w ${node.host.binary}`);
});

attackAsNobody('its directory belongs to another user', async () => {
  await using node = await startNode();
  const directory = dirname(node.host.binary);
  await chown(directory, NOBODY, 0);
  await expectRefused(node, `chown -h root ${directory}`);
});

attackAsNobody('its directory is open to a group with a user in it', async () => {
  await using node = await startNode();
  const directory = dirname(node.host.binary);
  await chown(directory, 0, NOBODY);
  await chmod(directory, 0o2775);
  await expectRefused(node, `chmod go-w ${directory}`);
});

/**
 * The number of the group staff if it has no members, as on Debian, which gives /usr/local to this group; undefined if
 * there is no such group.
 */
const staff = /^staff:x:(\d+):$/m.exec(readFileSync('/etc/group', 'utf8'))?.[1];
const attackWithStaff =
  staff === undefined ? testUnless('this host has no empty group staff') : attackAsNobody;

attackWithStaff('a group that nobody is in does not count', async () => {
  await using node = await startNode();
  const directory = dirname(node.host.binary);
  await chown(directory, 0, Number(staff));
  await chmod(directory, 0o2775);
  node.startAgent();
  await node.send('/new', NEW);
  await node.end();
  expect(node.statuses.at(-1)).toBe('Completed');
});

test('it is opened while the agent works: the update ends before the swap, and once fixed a retry succeeds', async () => {
  await using node = await startNode();
  const directory = dirname(node.host.binary);
  node.onStatus = (status) => {
    if (status === 'Downloading') void chmod(directory, 0o777);
  };
  const before = await node.installed();
  node.startAgent();
  await node.send('/new', NEW);
  await node.end();
  expect(['Failed', 'FailedDownload']).toContain(node.statuses.at(-1));
  expect((await node.report())?.reason).toContain(`run "chmod go-w ${directory}"`);
  expect(await node.installed()).toBe(before);
  await chmod(directory, 0o755);
  node.onStatus = () => undefined;
  await node.send('/new', NEW);
  await node.end();
  expect(node.statuses.at(-1)).toBe('Completed');
});
