/** Tests what is said about agents before an upgrade. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import type { KubeObject, Node } from '../../kube/resources.ts';
import { encodePresence, HEARTBEAT_MS } from '../../signal/agent-presence.ts';
import { AGENT_ANNOTATION, HEARTBEAT_ANNOTATION } from '../../signal/names.ts';
import { rfc3339 } from '../../util/clock.ts';
import { agentFindings, k0sHostFindings, withoutAgents } from './agents-ground.ts';

const SINCE = rfc3339(T0);

function host(name: string, presence: object | undefined, heartbeat?: object): Node {
  const annotations =
    presence === undefined
      ? {}
      : {
          [AGENT_ANNOTATION]: encodePresence({ version: '0.3.0', since: SINCE, ...presence }),
          ...(heartbeat && {
            [HEARTBEAT_ANNOTATION]: JSON.stringify({ at: SINCE, since: SINCE, ...heartbeat }),
          }),
        };
  const node = buildNode(name, { annotations });
  const heard = rfc3339(T0 + 10 * HEARTBEAT_MS);
  const conditions = [{ type: 'Ready', status: 'True', lastHeartbeatTime: heard }];
  return { ...node, status: { ...node.status, conditions } } as Node;
}

const LATE = rfc3339(T0 + 9 * HEARTBEAT_MS);
const judge = (...objects: KubeObject[]) => agentFindings({ kind: 'Node', objects }, 'k0s');

test('agents that have sent a heartbeat and have room cause no finding', () => {
  expect(judge(host('w1', {}, { at: LATE, room: 2 ** 30 }))).toEqual([]);
});

test('a silent agent is a warning, and nodes that say the same share one finding', () => {
  expect(judge(host('w1', {}, {}), host('w2', {}, {}))).toEqual([
    expect.objectContaining({ state: 'warning', object: 'Node w1, Node w2' }),
  ]);
});

test('a host without room for the downloads is a blocker', () => {
  expect(judge(host('w1', {}, { at: LATE, room: 100 * 2 ** 20 }))).toEqual([
    expect.objectContaining({
      state: 'blocker',
      object: 'Node w1',
      message: 'it has 100 MiB free for downloads, and an upgrade needs 256 MiB',
    }),
  ]);
});

test('the room of a host without heartbeats is that of the last download check', () => {
  const room = (bytes: number) => ({ checked: { id: '', room: bytes } });
  expect(judge(host('w1', room(2 ** 30)))).toEqual([]);
  expect(judge(host('w1', room(10 * 2 ** 20)))).toEqual([
    expect.objectContaining({
      state: 'blocker',
      message: 'it has 10 MiB free for downloads, and an upgrade needs 256 MiB',
    }),
  ]);
});

test('an agent that has not told its room is a question without an answer', () => {
  expect(judge(host('w1', {}), host('w2', {}))).toEqual([
    {
      state: 'unknown',
      object: 'Node w1, Node w2',
      message: 'its agent has not told how much space is free for downloads',
    },
  ]);
});

test('what a silent agent has said about its room is no blocker', () => {
  expect(judge(host('w1', {}, { room: 1 }))).toEqual([
    expect.objectContaining({ state: 'warning', object: 'Node w1' }),
  ]);
});

test('an agent that does not know whether another agent acts is a blocker', () => {
  expect(judge(host('w1', { doubt: 'k0s does not answer' }, { at: LATE }))).toEqual([
    expect.objectContaining({
      state: 'blocker',
      message: 'its agent carries out no new signal: k0s does not answer',
    }),
  ]);
});

test('agents of another procedure are left to their own dialect', () => {
  expect(judge(host('w1', { procedure: 'kubeadm' }, { room: 1 }))).toEqual([]);
});

test('a node without an agent is a warning only if others have one', () => {
  const bare = host('w2', undefined);
  const of = (...objects: KubeObject[]) => withoutAgents({ kind: 'Node', objects }, 'k0s');
  expect(of(bare)).toEqual([]);
  expect(of(host('w1', {}), bare)).toEqual([
    expect.objectContaining({ state: 'warning', object: 'Node w2' }),
  ]);
});

const judgeFor = (to: string, ...objects: KubeObject[]) =>
  k0sHostFindings({ kind: 'Node', objects }, to);
function running(node: Node, kubeletVersion: string): Node {
  return { ...node, status: { ...node.status, nodeInfo: { kubeletVersion } } };
}

test('a host of k0s on cgroup v1 is a blocker from the version on whose kubelet refuses it', () => {
  const refused = host('w1', { cgroupV1: 'refused' }, { at: LATE });
  const allowed = host('w2', { cgroupV1: 'allowed' }, { at: LATE });
  expect(judgeFor('v1.34.9+k0s.0', refused, allowed)).toEqual([]);
  expect(judgeFor('v1.35.0+k0s.0', refused, allowed)).toEqual([
    expect.objectContaining({
      state: 'blocker',
      object: 'Node w1',
      message: expect.stringContaining('the host has cgroup v1') as string,
    }),
  ]);
});

test.each([
  ['v1.35.6+k0s', 'v1.36.3+k0s.0', true],
  ['v1.35.6+k0s', 'v1.35.7+k0s.0', false],
  // This worker runs with the files, so k0s was told to accept them.
  ['v1.36.2+k0s', 'v1.36.3+k0s.0', false],
])('files for containerd 1 on a host of %s are a blocker for %s: %s', (from, to, isFound) => {
  const found = host('w1', { oldContainerd: ['nvidia.toml'] }, { at: LATE });
  const blocker = expect.objectContaining({
    state: 'blocker',
    object: 'Node w1',
    message: expect.stringContaining(
      'in /etc/k0s/containerd.d/nvidia.toml, so the worker',
    ) as string,
  }) as object;
  expect(judgeFor(to, running(found, from))).toEqual(isFound ? [blocker] : []);
});

test('what a silent agent has said about its host does not count', () => {
  const said = { oldContainerd: ['nvidia.toml'], cgroupV1: 'refused' };
  expect(judgeFor('v1.36.3+k0s.0', running(host('w1', said, {}), 'v1.34.1+k0s'))).toEqual([]);
});
