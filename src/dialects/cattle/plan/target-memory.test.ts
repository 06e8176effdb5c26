/** Proves that each dialect has its own memory, and that the memory computes a target again only after a change. */
import { expect, test } from 'vitest';
import { buildCattlePlan } from '../../../../test/support/builders/cattle-plans.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildWorldOf } from '../../../../test/support/builders/worlds-of-kinds.ts';
import { later, T0 } from '../../../../test/support/clock/times.ts';
import type { Target } from '../../../engine/model/rollout.ts';
import { jobs, type Node, nodes, pods, secrets } from '../../../kube/resources.ts';
import { cattle } from './cattle-dialect.ts';
import { DEFAULT_JOB_SETTINGS } from './config.ts';
import { createPlanMemory, createTargetMemory } from './target-memory.ts';

const plan = buildCattlePlan('p');

function countingCompute(since: string) {
  const computed: string[] = [];
  const compute = ({ metadata: { name } }: Node): Target => {
    computed.push(name);
    return { key: name, name, state: 'pending', since };
  };
  return { computed, compute };
}

test('two dialects remember the targets of the same Plan separately', () => {
  const config = { name: 'c', namespace: 'system-upgrade', job: DEFAULT_JOB_SETTINGS };
  const node = buildNode('a', { labels: { 'kubernetes.io/hostname': 'a' } });
  const world = buildWorldOf([nodes, [node]], [jobs, []], [pods, []], [secrets, []]);
  const first = cattle(config);
  const second = cattle(config);
  const targetsOf = (dialect: typeof first) => dialect.resolve(plan, world, T0).stages[0]?.targets;
  const targets = targetsOf(first);
  expect(targets).toHaveLength(1);
  expect(targetsOf(first)).toBe(targets);
  expect(targetsOf(second)).toEqual(targets);
  expect(targetsOf(second)).not.toBe(targets);
});

test('a Plan has one memory for each hash, and a changed Plan starts with an empty one', () => {
  const memory = createTargetMemory();
  expect(memory.of(plan, 'h1')).toBe(memory.of(plan, 'h1'));
  expect(memory.of(plan, 'h1')).not.toBe(memory.of(plan, 'h2'));
  expect(memory.of(plan, 'h1')).not.toBe(memory.of({ ...plan }, 'h1'));
});

test('a target is computed again when its node or its Jobs change', () => {
  const memory = createPlanMemory();
  const { computed, compute } = countingCompute(later(0));
  const node = buildNode('a');
  const target = memory.targetOf(node, undefined, compute);
  expect(memory.targetOf(node, undefined, compute)).toBe(target);
  expect(computed).toEqual(['a']);
  memory.targetOf(node, [], compute);
  memory.targetOf({ ...node }, undefined, compute);
  expect(computed).toEqual(['a', 'a', 'a']);
});

test('nodes are ranked again only after one was added or removed', () => {
  const memory = createPlanMemory();
  const ranked: string[] = [];
  const rankOf = ({ metadata: { name } }: Node): number => {
    ranked.push(name);
    return -name.charCodeAt(0);
  };
  const namesOf = (all: readonly Node[]) =>
    memory.sorted(all, rankOf).map(({ metadata }) => metadata.name);
  const all = [buildNode('a'), buildNode('b')];
  expect(namesOf(all)).toEqual(['b', 'a']);
  expect(namesOf(all.map((node) => ({ ...node })))).toEqual(['b', 'a']);
  expect(ranked).toEqual(['a', 'b']);
  expect(namesOf([...all, buildNode('c')])).toEqual(['c', 'b', 'a']);
  expect(ranked).toHaveLength(5);
});

test('nodes are in the order of their ranks, also after a Node was created again with its name', () => {
  const ranks: Record<string, number> = { 'a-uid': 2, 'b-uid': 3, 'c-uid': 1, new: 4 };
  const memory = createPlanMemory();
  const namesOf = (...all: Node[]) =>
    memory
      .sorted(all, ({ metadata: { uid = '' } }) => ranks[uid] ?? 0)
      .map(({ metadata }) => metadata.name);
  expect(namesOf(buildNode('a'), buildNode('b'), buildNode('c'))).toEqual(['c', 'a', 'b']);
  const again = buildNode('a', { uid: 'new' });
  expect(namesOf(again, buildNode('b'), buildNode('c'))).toEqual(['c', 'b', 'a']);
});

test('the list is the same object only while it has the same targets', () => {
  const memory = createPlanMemory();
  const { compute } = countingCompute(later(0));
  const [a, b, c] = ['a', 'b', 'c'].map((name) => compute(buildNode(name)));
  if (!a || !b || !c) throw new Error('three targets are needed');
  const first = memory.sameList([a, b]);
  expect(memory.sameList([a, b])).toBe(first);
  expect(memory.sameList([a])).toEqual([a]);
  expect(memory.sameList([a, c])).toEqual([a, c]);
  expect(memory.sameList([])).toEqual([]);
});
