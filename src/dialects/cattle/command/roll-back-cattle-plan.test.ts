/**
 * Tests how the change that rolls back a Plan of Rancher is built: the earlier version, the nodes that are left out,
 * and the order.
 */
import { expect, test } from 'vitest';
import {
  buildCattlePlan,
  type CattleSpec,
} from '../../../../test/support/builders/cattle-plans.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import type { NodeRolloutRun } from '../../../api/refit/node-rollout.ts';
import type { Node } from '../../../kube/resources.ts';
import { latestHash } from '../plan/latest.ts';
import { hashLabelOf } from '../plan/names.ts';
import { type CattleScene, cattleWayBack } from './roll-back-cattle-plan.ts';

const OLD = 'v1.36.2+k3s1';
const NEW = 'v1.36.3+k3s1';
const K3S: Partial<CattleSpec> = { upgrade: { image: 'rancher/k3s-upgrade' } };
const SERVER = { 'node-role.kubernetes.io/control-plane': 'true' };
const OWN_IMAGE = 'example.com/k3s-any-way';

const planTo = (version: string, spec: Partial<CattleSpec> = K3S, name = 'p') =>
  buildCattlePlan(name, { ...spec, version });
const hashAt = (version: string, name = 'p') =>
  latestHash(planTo(version, K3S, name), version.replace('+', '-'), []);

function nodeAt(
  name: string,
  version: string,
  hash?: string,
  labels: Record<string, string> = {},
): Node {
  const node = buildNode(name, {
    labels: {
      'kubernetes.io/hostname': name,
      ...(hash === undefined ? {} : { [hashLabelOf('p')]: hash }),
      ...labels,
    },
  });
  const nodeInfo = { ...node.status?.nodeInfo, kubeletVersion: version };
  return { ...node, status: { ...node.status, nodeInfo } };
}

function runTo(version: string, more: Partial<NodeRolloutRun> = {}): NodeRolloutRun {
  return {
    id: hashAt(version),
    planUid: 'p-uid',
    version: version.replace('+', '-'),
    started: '2026-01-01T00:00:00Z',
    phase: 'done',
    counts: { total: 1, done: 1, failed: 0, inProgress: 0, pending: 0, skipped: 0 },
    ...more,
  };
}

const before = (...entries: readonly (readonly [string, ...string[]])[]) => ({
  before: entries.map(([version, ...nodes]) => ({ role: 'worker' as const, version, nodes })),
});

function scene(nodes: readonly Node[], more: Partial<CattleScene> = {}): CattleScene {
  const plan = planTo(NEW);
  const run = runTo(NEW, before([OLD, ...nodes.map(({ metadata }) => metadata.name)]));
  const status = { latestVersion: 'v1.36.3-k3s1', latestHash: hashAt(NEW) };
  return {
    plan: { ...plan, status },
    run,
    history: [run],
    nodes,
    plans: [],
    image: OWN_IMAGE,
    ...more,
  };
}

test('nodes that the run has labelled go back; a node with the hash of the older version is done there', () => {
  const nodes = [nodeAt('a', NEW, hashAt(NEW)), nodeAt('b', OLD, hashAt(OLD))];
  const way = cattleWayBack(scene(nodes));
  expect(way.moves).toEqual([{ name: 'a', isServer: false, from: NEW, to: OLD }]);
  expect(way.spec).toEqual({ version: OLD, upgrade: { image: OWN_IMAGE } });
  expect(way.left).toEqual([`b was not changed by the run, and already counts as done at ${OLD}`]);
});

test('a node that never moved and has another hash is excluded, so that going back does not upgrade it', () => {
  const nodes = [nodeAt('a', NEW, hashAt(NEW)), nodeAt('b', 'v1.35.9+k3s1')];
  const { spec, left } = cattleWayBack(scene(nodes));
  expect(spec['nodeSelector']).toEqual({
    matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'NotIn', values: ['b'] }],
  });
  expect(left).toEqual([
    expect.stringContaining('b was not changed by the run; spec.nodeSelector excludes it'),
  ]);
});

test('with a Secret in the hash every node that did not move is excluded', () => {
  const plan = planTo(NEW, { ...K3S, secrets: [{ name: 's', path: '/s' }] });
  const nodes = [nodeAt('a', NEW, hashAt(NEW)), nodeAt('b', OLD, hashAt(OLD))];
  const { spec } = cattleWayBack(scene(nodes, { plan }));
  expect(spec['nodeSelector']).toMatchObject({ matchExpressions: [{ values: ['b'] }] });
});

test('a node with a slot of the run goes back, although it has no label yet', () => {
  const base = scene([nodeAt('a', NEW)]);
  const plan = { ...base.plan, status: { ...base.plan.status, applying: ['a'] } };
  expect(cattleWayBack({ ...base, plan }).moves).toMatchObject([{ name: 'a' }]);
});

test('the prepare that waits for the servers is removed', () => {
  const plan = planTo(NEW, {
    ...K3S,
    prepare: { image: 'rancher/k3s-upgrade', args: ['prepare', 'servers'] },
  });
  const { spec, notes } = cattleWayBack(scene([nodeAt('a', NEW, hashAt(NEW))], { plan }));
  expect(spec).toHaveProperty('prepare', null);
  expect(notes.join('\n')).toContain('it waits until Plan servers is complete at the same version');
});

test('another image goes back to the version of the run before', () => {
  const plan = planTo('v2', { upgrade: { image: 'os' } });
  const run = runTo('v2');
  const nodes = [nodeAt('a', NEW, hashAt('v2'))];
  const known = { plan, run, image: undefined };
  const way = cattleWayBack(scene(nodes, { ...known, history: [run, runTo('v1')] }));
  expect(way.moves).toEqual([{ name: 'a', isServer: false, from: 'v2', to: 'v1' }]);
  expect(way.spec).toEqual({ version: 'v1' });
  const refused = (history: readonly NodeRolloutRun[], words: string) =>
    expect(() => cattleWayBack(scene(nodes, { ...known, history }))).toThrow(words);
  refused([run], 'records no run of this Plan before');
  refused([run, runTo('v1', { phase: 'failed' })], 'ended as failed and not as done');
  refused([run, runTo('v2', { id: 'other' })], 'the run before had the same version v2');
  refused([run, runTo('v1', { planUid: 'other' })], 'records no run of this Plan before');
});

const moved = (name: string, labels = {}) => nodeAt(name, NEW, hashAt(NEW), labels);
const coupled = {
  ...planTo(NEW, { prepare: { image: 'i', args: ['prepare', 'p'] } }, 'agents'),
  status: { latestVersion: 'v1.36.3-k3s1', latestHash: 'agents-hash' },
};

test.each<[string, Partial<CattleScene> & { readonly nodes: readonly Node[] }, string]>([
  ['no node has moved', { nodes: [nodeAt('a', OLD)] }, 'has changed no node of the Plan'],
  [
    'the version before is unknown',
    { nodes: [moved('a')], run: runTo(NEW) },
    'what node a ran before run',
  ],
  [
    'the versions before differ',
    { nodes: [moved('a'), moved('b')], run: runTo(NEW, before([OLD, 'a'], ['v1.36.1+k3s1', 'b'])) },
    `${OLD} on a; v1.36.1+k3s1 on b`,
  ],
  [
    'the version before is newer',
    { nodes: [moved('a')], run: runTo(NEW, before(['v1.36.9+k3s1', 'a'])) },
    'going back never upgrades a node',
  ],
  [
    'nobody vouches for the image',
    { nodes: [moved('a')], image: undefined },
    'Use --image to name an image',
  ],
  [
    'a server goes to an older minor version',
    { nodes: [moved('a', SERVER)], run: runTo(NEW, before(['v1.35.9+k3s1', 'a'])) },
    'the older minor version v1.35.9+k3s1',
  ],
  [
    'servers and workers are in one Plan',
    { nodes: [moved('a', SERVER), moved('b')] },
    'has servers and workers',
  ],
  [
    'a worker of another Plan is newer than the servers would be',
    {
      nodes: [moved('a', SERVER), nodeAt('w', NEW, undefined, { skip: 'me' })],
      plan: { ...planTo(NEW, { ...K3S, nodeSelector: { matchLabels: SERVER } }) },
    },
    `worker w runs ${NEW}`,
  ],
  [
    'a Plan that waits for this one has upgraded nodes',
    {
      nodes: [
        moved('a', SERVER),
        nodeAt('w', OLD, undefined, { [hashLabelOf('agents')]: 'agents-hash' }),
      ],
      plan: planTo(NEW, { ...K3S, nodeSelector: { matchLabels: SERVER } }),
      plans: [coupled],
    },
    'run refit rollback cattle/system-upgrade/agents first',
  ],
])('it is refused if %s', (_what, { nodes, ...more }, words) => {
  expect(() => cattleWayBack(scene(nodes, more))).toThrow(words);
});

test('a Plan that waits for this one and has upgraded nothing is told', () => {
  const { notes } = cattleWayBack(scene([moved('a', SERVER)], { plans: [coupled] }));
  expect(notes.join('\n')).toContain(
    'The Plan cattle/system-upgrade/agents waits until this one is complete at v1.36.3-k3s1',
  );
});

test('at most 200 nodes are excluded', () => {
  const others = Array.from({ length: 201 }, (_, index) => nodeAt(`n${index}`, OLD));
  expect(() => cattleWayBack(scene([moved('a'), ...others]))).toThrow('did not change 201 nodes');
});
