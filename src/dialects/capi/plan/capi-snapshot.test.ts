/**
 * Proves which Machines of a control plane are asked for a snapshot of etcd: each Machine that starts before any
 * Machine is done.
 */
import { expect, test } from 'vitest';
import { buildMachineUpdate } from '../../../../test/support/builders/machine-updates.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildWorld } from '../../../../test/support/builders/worlds.ts';
import { later } from '../../../../test/support/clock/times.ts';
import { NODE_ANNOTATIONS } from '../../../api/capi/machine.ts';
import type { World } from '../../../engine/contract/world.ts';
import type { Signalling } from '../../../engine/model/decision.ts';
import type { RecordedState } from '../../../engine/model/rollout.ts';
import { annotated, type Node } from '../../../kube/resources.ts';
import { agentPolicyFor } from '../../../signal/annotations.ts';
import { capi } from './capi-dialect.ts';
import { type MachineUpdate, RECORD_ANNOTATION, withRequest } from './machine-update.ts';
import { resolve } from './rollout.ts';

const LABEL = 'node-role.kubernetes.io/control-plane';
const agent = { soakMs: 0, etcdSnapshot: { keep: 3 } };

interface Other extends Partial<MachineUpdate> {
  readonly state?: RecordedState;
  readonly cluster?: string;
  readonly labels?: Record<string, string>;
}

function controller(name: string, { state = 'intended', cluster = 'a', labels, ...more }: Other) {
  const node: Node = buildNode(name, { labels: labels ?? { [LABEL]: '' } });
  const update = { ...buildMachineUpdate(), role: 'controller', uid: name, ...more } as const;
  const record = { uid: name, phase: 'running', blocked: false, state, since: later(0) };
  return annotated(withRequest(node, update), {
    [NODE_ANNOTATIONS.cluster]: cluster,
    [RECORD_ANNOTATION]: JSON.stringify(record),
  });
}

function signalling(node: Node, more: Pick<Signalling, 'agent'>) {
  const rollout = resolve(node, buildWorld([], [node]), Date.parse(later(0)));
  const [stage] = rollout.stages;
  const [target] = stage?.targets ?? [];
  if (stage === undefined || target === undefined) throw new Error('the rollout has no target');
  return { rollout, asked: { stage, target, payload: { url: 'https://example.com' }, ...more } };
}

test.each<[string, Other, boolean]>([
  ['the first Machine', { state: 'pending' }, true],
  ['after one that failed', { state: 'failed' }, true],
  ['after one that is done', { state: 'done' }, false],
  ['after one that was done with another version', { state: 'done', version: 'v0' }, true],
  ['after one of another cluster', { state: 'done', cluster: 'b' }, true],
  ['after a worker that calls itself a controller', { state: 'done', labels: {} }, true],
])('%s', (_, other, isAsked) => {
  const node = controller('c1', {});
  const world = buildWorld([], [node, controller('c2', other)]);
  const { rollout, asked } = signalling(node, { agent });
  const sent = capi.signal.send(world, rollout, asked, node);
  const { annotations } = sent?.kind === 'replace' ? sent.object.metadata : {};
  expect(agentPolicyFor(annotations, asked.target.since).etcdSnapshot).toEqual(
    isAsked ? agent.etcdSnapshot : undefined,
  );
});

test('without snapshots, a signal looks at no other Node', () => {
  const node = controller('c1', {});
  const world = buildWorld([], [node, controller('c2', { state: 'done' })]);
  let lists = 0;
  const counting: World = {
    ...world,
    list: (kind) => {
      lists++;
      return world.list(kind);
    },
  };
  const { rollout, asked } = signalling(node, { agent: { soakMs: 0 } });
  expect(capi.signal.send(counting, rollout, asked, node)?.kind).toBe('replace');
  expect(lists).toBe(0);
});
