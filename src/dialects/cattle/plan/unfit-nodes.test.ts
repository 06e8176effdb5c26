/** Shows on which nodes no pod of a Plan can start, and that status and preview say so before the nodes are drained. */
import { expect, test } from 'vitest';
import {
  buildCattlePlan,
  type CattleSpec,
} from '../../../../test/support/builders/cattle-plans.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildWorldOf } from '../../../../test/support/builders/worlds-of-kinds.ts';
import { type Node, nodes } from '../../../kube/resources.ts';
import { cattleView } from './cattle-dialect.ts';
import { hashLabelOf } from './names.ts';
import { unfitNodes } from './unfit-nodes.ts';

type Taint = NonNullable<NonNullable<Node['spec']>['taints']>[number];
const CRITICAL: Taint = { key: 'CriticalAddonsOnly', value: 'true', effect: 'NoExecute' };
const TITLE = 'Plan system-upgrade/p';

function nodeWith(name: string, taints: readonly Taint[], labels: Record<string, string> = {}) {
  const node = buildNode(name, { labels: { 'kubernetes.io/hostname': name, ...labels } });
  return { ...node, spec: { taints: [...taints] } };
}

function found(spec: Partial<CattleSpec>, ...all: readonly Node[]): string[] {
  return unfitNodes(buildCattlePlan('p', spec), buildWorldOf([nodes, all]));
}

test('a Plan without tolerations names the taint of the servers that it selects', () => {
  const servers = ['s1', 's2'].map((name) => nodeWith(name, [CRITICAL]));
  const sentence = `${TITLE} does not tolerate the taint CriticalAddonsOnly=true:NoExecute of s1, s2, so no pod of its Jobs can start there: add a toleration to spec.tolerations`;
  expect(found({}, ...servers, nodeWith('a1', []))).toEqual([sentence]);
  const world = buildWorldOf([nodes, servers]);
  const plan = buildCattlePlan('p');
  expect(cattleView.reporting?.warnings?.(plan, world, [plan])).toEqual([sentence]);
});

test.each<[string, NonNullable<CattleSpec['tolerations']>]>([
  ['any taint', [{ operator: 'Exists' }]],
  ['the key', [{ key: 'CriticalAddonsOnly', operator: 'Exists' }]],
  ['the value', [{ key: 'CriticalAddonsOnly', value: 'true', effect: 'NoExecute' }]],
])('a Plan that tolerates %s of a taint has nothing to say', (_name, tolerations) => {
  expect(found({ tolerations }, nodeWith('s1', [CRITICAL]))).toEqual([]);
});

test.each<[string, NonNullable<CattleSpec['tolerations']>]>([
  ['another effect', [{ key: 'CriticalAddonsOnly', operator: 'Exists', effect: 'NoSchedule' }]],
  ['another value', [{ key: 'CriticalAddonsOnly', value: 'yes' }]],
  ['another key', [{ key: 'node-role.kubernetes.io/master', operator: 'Exists' }]],
])('a Plan that tolerates %s is told that this is not sufficient', (_name, tolerations) => {
  expect(found({ tolerations }, nodeWith('s1', [CRITICAL]))).toHaveLength(1);
});

test.each<[string, Taint]>([
  ['prefers other nodes only', { key: 'a', effect: 'PreferNoSchedule' }],
  ['Kubernetes removes itself', { key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' }],
])('a taint that %s is no reason for a sentence', (_name, taint) => {
  expect(found({}, nodeWith('a1', [taint]))).toEqual([]);
});

test('a node with which the Plan is done, or that it does not select, is no reason for a sentence', () => {
  const done = nodeWith('s1', [CRITICAL], { [hashLabelOf('p')]: 'h' });
  const world = buildWorldOf([nodes, [done]]);
  const plan = { ...buildCattlePlan('p'), status: { latestHash: 'h' } };
  expect(unfitNodes(plan, world)).toEqual([]);
  const nodeSelector = { matchLabels: { pool: 'a' } };
  expect(found({ nodeSelector }, nodeWith('s1', [CRITICAL]))).toEqual([]);
});

test('a Plan that installs K3s or RKE2 is told that its image has no release for Windows', () => {
  const windows = nodeWith('w1', [], { 'kubernetes.io/os': 'windows' });
  const upgrade = { image: 'rancher/rke2-upgrade' };
  expect(found({ upgrade }, windows, nodeWith('a1', []))).toEqual([
    `${TITLE} selects w1 with Windows, but its image has no release for Windows, so no pod of its Jobs can start there: add kubernetes.io/os: linux to spec.nodeSelector.matchLabels`,
  ]);
  expect(found({ upgrade: { image: 'example.com/windows-script' } }, windows)).toEqual([]);
});

test('a node whose name is too long for a label of its Job is named', () => {
  const name = `${'n'.repeat(60)}.abc`;
  expect(found({}, nodeWith(name, []), nodeWith('n'.repeat(63), []))).toEqual([
    `${TITLE} selects ${name}, whose name has 64 characters; the API server refuses each Job for it, because a label of the Job has this name and at most 63 characters`,
  ]);
});
