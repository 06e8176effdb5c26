/** Somebody writes an old signal again, or takes the status of a finished one away, to have an old version installed. */
import { expect, test } from 'vitest';
import { decodeSignal, encodeSignal } from '../../src/signal/annotations.ts';
import { NEW, NEXT } from '../agent/rig.ts';
import { startNode, useCluster } from './rig.ts';

useCluster();

test.each([
  ['eight days ago', -8],
  ['in eight days', 8],
])('a signal that was created %s is refused', async (_name, days) => {
  await using node = await startNode();
  node.startAgent();
  await node.send('/new', NEW, {}, new Date(Date.now() + days * 86_400_000).toISOString());
  await node.end();
  expect(node.statuses).toEqual(['FailedDownload']);
  expect((await node.report())?.reason).toContain('the signal was created at');
  expect(node.server.requests).toEqual([]);
});

test.each([
  ['while the agent runs', false],
  ['after it was restarted', true],
])('a finished signal is not obeyed again %s', async (_name, isRestarted) => {
  await using node = await startNode();
  const agent = node.startAgent();
  await node.send('/new', NEW);
  await node.end();
  const first = decodeSignal((await node.object()).metadata.annotations);
  if (first === undefined) throw new Error('no signal');
  await node.send('/next', NEXT);
  await node.end();
  expect(await node.host.version()).toBe(NEXT);
  if (isRestarted) await agent.stop('SIGTERM');
  const { planId, created, command } = first;
  await node.annotate(encodeSignal({ planId, created, command }));
  const second = isRestarted ? node.startAgent() : agent;
  await node.until(() => expect(second.log.join('\n')).toContain('ignoring a signal that has come to its end before'));
  expect(await node.host.version()).toBe(NEXT);
  expect(node.server.requests).toHaveLength(2);
});
