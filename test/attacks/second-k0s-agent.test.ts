/**
 * Tests that only one of two agents acts when the agent of k0s works on the same signal, and that a roll-back stays
 * possible.
 */
import { copyFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { writeWorkerProfile } from '../../sandbox/hosts/host.ts';
import { agentOf } from '../../src/signal/agent-presence.ts';
import { decodeSignal, encodeSignal } from '../../src/signal/annotations.ts';
import { encodePrefetch } from '../../src/signal/prefetch.ts';
import { NEW, type Rig } from '../agent/rig.ts';
import { startNode, useCluster } from './rig.ts';

useCluster();

const ASIDE = "leaving this signal to k0s's own agent";

/** Writes a status, as another agent or a leader does. */
async function write(node: Rig, status: string): Promise<void> {
  const signal = decodeSignal((await node.object()).metadata.annotations);
  if (signal === undefined) throw new Error('no signal');
  await node.annotate(encodeSignal({ ...signal, status: { status, timestamp: node.created } }));
}

/** The other agent puts the new binary in place and restarts the service. */
async function updateByAnother(node: Rig): Promise<void> {
  const { binary, directory } = node.host;
  await copyFile(`${directory}/../new`, `${binary}.theirs`);
  await rename(`${binary}.theirs`, binary);
  process.kill(node.host.pid ?? 0, 'SIGTERM');
  await node.until(async () => expect(await node.host.version()).toBe(NEW));
}

test("a controller whose command line leaves k0s's agent on is left to it", async () => {
  await using node = await startNode({ role: 'controller', ownAgent: true });
  const before = await node.installed();
  const agent = node.startAgent();
  await node.send('/new', NEW);
  await node.until(() => expect(agent.log.join('\n')).toContain(ASIDE));
  expect(node.statuses).toEqual([]);
  await node.until(async () =>
    expect(agentOf(await node.object()).title).toContain("k0s's own (Refit "),
  );
  expect(node.server.requests).toEqual([]);
  await agent.stop('SIGTERM');
  const refusing = node.startAgent('--beside-k0s', 'refuse');
  await node.until(() => expect(node.statuses).toEqual(['FailedDownload']));
  expect((await node.report())?.reason).toContain('--disable-components=autopilot');
  expect(await node.installed()).toBe(before);
  await refusing.stop('SIGTERM');
  node.startAgent('--beside-k0s', 'replace');
  await node.send('/new', NEW);
  await node.end();
  expect(node.statuses.at(-1)).toBe('Completed');
  expect(agentOf(await node.object())).toMatchObject({ ours: true });
});

/** Returns the annotations with which a leader requests a download in advance. */
const wishFor = (node: Rig): Record<string, string> => {
  const { url } = node.server;
  const sha256 = node.server.sha256('/new') ?? '';
  const command = { id: 0, kind: 'k0supdate', url: `${url}/new`, version: NEW, sha256 } as const;
  return encodePrefetch({ rollout: 'uid', command, policy: {} });
};

test('a worker that was started with its own agent is left to it, and nothing is fetched ahead', async () => {
  await using node = await startNode({ ownAgent: true });
  const agent = node.startAgent();
  await node.until(async () =>
    expect(agentOf(await node.object()).title).toContain("k0s's own (Refit "),
  );
  await node.annotate(wishFor(node));
  await node.send('/new', NEW);
  await node.until(() => expect(agent.log.join('\n')).toContain(ASIDE));
  expect(node.statuses).toEqual([]);
  expect(node.server.requests).toEqual([]);
});

test('nothing is reported before it is known what a worker was started with', async () => {
  await using node = await startNode();
  await rm(join(node.host.dataDirectory, 'worker-profile.yaml'));
  const agent = node.startAgent();
  await node.annotate(wishFor(node));
  await node.send('/new', NEW);
  const waits = 'waiting for an answer to the question which agent acts on this host';
  await node.until(() => expect(agent.log.join('\n')).toContain(waits));
  expect(node.statuses).toEqual([]);
  expect(node.server.requests).toEqual([]);
  expect((await node.report())?.reason).toContain('restart k0s here');
  expect(agentOf(await node.object())).toMatchObject({ ours: false });
  await writeWorkerProfile(node.host.dataDirectory, false);
  await node.end();
  expect(node.statuses.at(-1)).toBe('Completed');
});

test('one that was faster during the download is left to finish', async () => {
  await using node = await startNode({ bytes: 64_000, faults: [{ paceMs: 200 }] });
  const before = await node.installed();
  const agent = node.startAgent();
  await node.send('/new', NEW);
  await node.until(() => expect(node.server.requests[0]?.bytesSent).toBeGreaterThan(0));
  await write(node, 'Cordoning');
  await agent.stop('SIGKILL');
  const next = node.startAgent();
  await node.until(() => expect(next.log.join('\n')).toContain(ASIDE));
  await updateByAnother(node);
  for (const status of ['ApplyingUpdate', 'Restart', 'UnCordoning', 'Completed'])
    await write(node, status);
  await node.end();
  expect(node.statuses).not.toContain('Failed');
  expect(await node.installed()).not.toBe(before);
  expect(await node.leftovers()).toEqual([]);
});

test.each(['observe', 'replace'])(
  'one that swapped first leaves the way back alone (%s)',
  async (beside) => {
    await using node = await startNode({ policy: { cordoning: 'leader' } });
    const agent = node.startAgent('--beside-k0s', beside);
    await node.send('/new', NEW);
    await node.until(() => expect(node.statuses).toContain('Cordoning'));
    await copyFile(node.host.binary, `${node.host.binary}.previous`);
    const wayBack = await node.installed('.previous');
    await updateByAnother(node);
    await write(node, 'ApplyingUpdate');
    if (beside === 'observe') await node.until(() => expect(agent.log.join('\n')).toContain(ASIDE));
    else await node.until(() => expect(node.statuses).toContain('UnCordoning'));
    await write(node, 'UnCordoning');
    await write(node, 'Completed');
    await node.end();
    expect(node.statuses).not.toContain('Failed');
    expect(await node.installed('.previous')).toBe(wayBack);
    expect(await node.host.version()).toBe(NEW);
  },
);
