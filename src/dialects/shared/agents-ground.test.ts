/** Tests what is said about agents before an upgrade. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import type { KubeObject } from '../../kube/resources.ts';
import { encodePresence, HEARTBEAT_MS } from '../../signal/agent-presence.ts';
import { AGENT_ANNOTATION, HEARTBEAT_ANNOTATION } from '../../signal/names.ts';
import { rfc3339 } from '../../util/clock.ts';
import { agentFindings, withoutAgents } from './agents-ground.ts';

const SINCE = rfc3339(T0);

function host(name: string, presence: object | undefined, heartbeat: object = {}): KubeObject {
  const annotations =
    presence === undefined
      ? {}
      : {
          [AGENT_ANNOTATION]: encodePresence({ version: '0.3.0', since: SINCE, ...presence }),
          [HEARTBEAT_ANNOTATION]: JSON.stringify({ at: SINCE, since: SINCE, ...heartbeat }),
        };
  const node = buildNode(name, { annotations });
  const heard = rfc3339(T0 + 10 * HEARTBEAT_MS);
  const conditions = [{ type: 'Ready', status: 'True', lastHeartbeatTime: heard }];
  return { ...node, status: { ...node.status, conditions } } as KubeObject;
}

const LATE = rfc3339(T0 + 9 * HEARTBEAT_MS);
const judge = (...objects: KubeObject[]) => agentFindings({ kind: 'Node', objects }, 'k0s');

test('agents that have sent a heartbeat and have room cause no finding', () => {
  expect(judge(host('w1', {}, { at: LATE, room: 2 ** 30 }))).toEqual([]);
});

test('a silent agent is a warning, and nodes that say the same share one finding', () => {
  expect(judge(host('w1', {}), host('w2', {}))).toEqual([
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
