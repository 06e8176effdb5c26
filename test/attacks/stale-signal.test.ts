/**
 * Tests that an old version is not installed if an attacker writes an old signal again, or removes the status of a
 * finished signal.
 */
import { expect, test } from 'vitest';
import { decodeSignal, encodeSignal } from '../../src/signal/annotations.ts';
import { NEW, NEXT } from '../agent/rig.ts';
import { startNode, useCluster } from './rig.ts';

useCluster();

test('a signal that was created eight days ago is refused', async () => {
  await using node = await startNode();
  node.startAgent();
  await node.send('/new', NEW, {}, new Date(Date.now() - 8 * 86_400_000).toISOString());
  await node.end();
  expect(node.statuses).toEqual(['FailedDownload']);
  expect((await node.report())?.reason).toContain('the signal was created at');
  expect(node.server.requests).toEqual([]);
});

test('a finished signal is not obeyed again while the agent runs, nor after it was restarted', async () => {
  await using node = await startNode();
  const agent = node.startAgent();
  await node.send('/new', NEW);
  await node.end();
  const first = decodeSignal((await node.object()).metadata.annotations);
  if (first === undefined) throw new Error('no signal');
  const { planId, created, command } = first;
  for (const isRestarted of [false, true]) {
    await node.send('/next', NEXT);
    await node.end();
    expect(await node.host.version()).toBe(NEXT);
    if (isRestarted) await agent.stop('SIGTERM');
    await node.annotate(encodeSignal({ planId, created, command }));
    node.created = created;
    if (isRestarted) node.startAgent();
    await node.until(async () =>
      expect((await node.report())?.reason).toContain('this signal has already ended as Completed'),
    );
    await node.end();
    expect(node.statuses.at(-1)).toBe('Failed');
    expect(await node.host.version()).toBe(NEXT);
    expect(node.server.requests).toHaveLength(2);
  }
});

test('etcd was restored, and the finished signal is at any status: it is answered, and nothing is done twice', async () => {
  await using node = await startNode();
  node.startAgent();
  await node.send('/new', NEW);
  await node.end();
  const signal = decodeSignal((await node.object()).metadata.annotations);
  if (signal === undefined) throw new Error('no signal');
  const { planId, created, command } = signal;
  const { starts } = node.host;
  for (const status of [undefined, 'Downloading', 'Cordoning', 'Restart', 'UnCordoning']) {
    const old = status === undefined ? {} : { status: { status, timestamp: created } };
    node.statuses = [];
    await node.annotate(encodeSignal({ planId, created, command, ...old }));
    await node.until(() => expect(node.statuses.at(-1), status).toBe('Completed'));
    await node.end();
    expect(node.host.starts, status).toBe(starts);
    expect(node.server.requests, status).toHaveLength(1);
  }
});

test('a finished bundle is answered as it ended', async () => {
  await using node = await startNode();
  node.startAgent();
  await node.send('/new', NEW, { kind: 'airgapupdate' });
  await node.end();
  const signal = decodeSignal((await node.object()).metadata.annotations);
  if (signal === undefined) throw new Error('no signal');
  const { planId, created, command } = signal;
  node.statuses = [];
  await node.annotate(encodeSignal({ planId, created, command }));
  await node.end();
  expect(node.statuses).toEqual(['Completed']);
  expect(node.server.requests).toHaveLength(1);
});
