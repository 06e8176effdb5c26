/**
 * Proves when the agent on a node counts as gone, as not started yet, or as short of disk space, even with wrong
 * clocks.
 */
import { expect, test } from 'vitest';
import { buildNode } from '../../../../../test/support/builders/nodes.ts';
import { later, T0 } from '../../../../../test/support/clock/times.ts';
import type { Node, NodeCondition } from '../../../../kube/resources.ts';
import { encodePresence, type Heartbeat, SILENT_MS } from '../../../../signal/agent-presence.ts';
import { AGENT_ANNOTATION, HEARTBEAT_ANNOTATION } from '../../../../signal/names.ts';
import { lackOfRoom, stalenessOf } from './answer-can.ts';

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

function nodeWith(
  heartbeat: Heartbeat | string,
  ready: Partial<NodeCondition> = {},
  since = -DAY,
): Node {
  const text = typeof heartbeat === 'string' ? heartbeat : JSON.stringify(heartbeat);
  const annotations = {
    [AGENT_ANNOTATION]: encodePresence({ version: '1.0.0', since: later(since) }),
    [HEARTBEAT_ANNOTATION]: text,
  };
  const condition = {
    type: 'Ready',
    status: 'True',
    lastHeartbeatTime: later(0),
    lastTransitionTime: later(-DAY),
  };
  return {
    ...buildNode('w1', { annotations }),
    status: { conditions: [{ ...condition, ...ready } as NodeCondition] },
  };
}
const since = later(-DAY);
const beat = (minutes: number, room = 2 ** 30): Heartbeat => ({
  at: later(-minutes * MINUTE),
  room,
  since,
});

test.each<[string, Node]>([
  ['lives', nodeWith(beat(4))],
  ['has missed two heartbeats', nodeWith(beat(14))],
  [
    'is on a host whose clock is a day behind',
    nodeWith(beat(24 * 60 + 4), { lastHeartbeatTime: later(-DAY) }),
  ],
  [
    'is on a host whose clock is a day ahead',
    nodeWith(beat(-24 * 60), { lastHeartbeatTime: later(DAY) }),
  ],
  ['sends no heartbeats, as earlier ones', nodeWith('')],
  ['sends none, and one before it did', nodeWith(beat(120), {}, -90 * MINUTE)],
  ['sends something else', nodeWith('{"at":7,"room":"much"}')],
  ['is on a node that no kubelet reports', nodeWith(beat(120), { lastHeartbeatTime: null })],
  ['is on a node that is not Ready', nodeWith(beat(4), { status: 'False' })],
])('an agent that %s: no obstacle', (_name, node) => {
  expect(stalenessOf(node, T0)).toBeUndefined();
});

test.each<[string, Node, string]>([
  [
    'silent while its kubelet reports',
    nodeWith(beat(120)),
    'the agent on node w1 has been silent for 2 h',
  ],
  [
    'silent, and whose clock was a day ahead when it started',
    nodeWith({ ...beat(120), since: later(DAY) }, {}, DAY),
    'the agent on node w1 has been silent for 2 h',
  ],
  [
    'silent with its kubelet',
    nodeWith(beat(4), { status: 'Unknown' }),
    `node w1 has been silent since ${later(-DAY)}`,
  ],
])('an agent that is %s: the node and the reason', (_name, node, reason) => {
  expect(stalenessOf(node, T0)).toBe(reason);
});

test.each<[string, Node]>([
  ['whose host has just started', nodeWith(beat(120), { lastTransitionTime: later(-MINUTE) })],
  [
    'whose kubelet has just become silent',
    nodeWith(beat(4), { status: 'Unknown', lastTransitionTime: later(-MINUTE) }),
  ],
])('an agent %s: no answer, since it may be back soon', (_name, node) => {
  expect(() => stalenessOf(node, T0)).toThrow(
    /^(the agent on )?node w1 has been silent .*, and may be back soon$/,
  );
});

test.each<[string, Node, string | undefined]>([
  ['has room', nodeWith(beat(4)), undefined],
  ['does not know its room', nodeWith({ at: later(0), since }), undefined],
  [
    'has none',
    nodeWith(beat(4, 256 * 1024 ** 2 - 1)),
    'node w1 has 255 MiB free besides its reserve, but an update needs 256 MiB',
  ],
])('an agent that %s', (_name, node, lack) => {
  expect(lackOfRoom(node)).toBe(lack);
});

test('silence counts from the first millisecond after its limit, and a node that is silent for five minutes stays away', () => {
  expect(
    stalenessOf(nodeWith({ at: later(-SILENT_MS), room: 2 ** 30, since }), T0),
  ).toBeUndefined();
  const away = { status: 'Unknown', lastTransitionTime: later(-5 * MINUTE) } as const;
  expect(stalenessOf(nodeWith(beat(4), away), T0)).toBe(
    `node w1 has been silent since ${later(-5 * MINUTE)}`,
  );
});

test('256 MiB are enough for a payload', () => {
  expect(lackOfRoom(nodeWith(beat(4, 256 * 2 ** 20)))).toBeUndefined();
  expect(lackOfRoom(nodeWith(beat(4, 256 * 2 ** 20 - 1)))).toContain('has 255 MiB free');
});
