/** Tests that facts are read from objects and never guessed. */
import { describe, expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import {
  buildTablePlan,
  tableDialect,
  withAnswer,
} from '../../../test/support/builders/table-dialect.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { buildWorld } from '../../../test/support/builders/worlds.ts';
import { later, T0 } from '../../../test/support/clock/times.ts';
import { growthOf } from '../../../test/support/growth.ts';
import { type KubeObject, type Node, nodes } from '../../kube/resources.ts';
import { ownMember } from '../../util/own-member.ts';
import type { World } from '../contract/world.ts';
import type { TargetFacts } from '../model/facts.ts';
import type { JoinedTarget } from '../model/joined-target.ts';
import { type Rollout, type Stage, type Target, withStages } from '../model/rollout.ts';
import { gather, platformOf } from './gather.ts';
import { isRelevant } from './predicates.ts';

function factsOf(object: KubeObject | undefined): TargetFacts | undefined {
  const world = buildWorld([], object ? [object] : []);
  const { targets, rollout } = gather(tableDialect, buildTablePlan({ workers: ['w1'] }), world, T0);
  return withStages(rollout).map(({ target }) => targets.get(target.key))[0];
}

const node = buildNode('w1');
const withConditions = (conditions: NonNullable<Node['status']>['conditions'] & {}): Node => ({
  ...node,
  status: { conditions },
});

test('the facts of many nodes that joined cost no more for each of them than those of few', () => {
  const world = buildWorld([], []);
  const plan = buildTablePlan({ workers: ['w1'] });
  const factsOfAll = (count: number): void => {
    const joined = Array.from({ length: count }, (_, index): JoinedTarget => {
      const name = `n${index}`;
      return { stage: 'workers', role: 'worker', target: buildTarget(name) };
    });
    const { targets } = gather({ ...tableDialect, joinedTargets: () => joined }, plan, world, T0);
    for (const { target } of joined) targets.get(target.key);
  };
  expect(growthOf(factsOfAll, 1_000, 16, 64)).toBeLessThan(64);
});

describe('the facts of a target', () => {
  test.each<[string, KubeObject | undefined, Partial<TargetFacts>]>([
    ['no object', undefined, { exists: false, observation: { kind: 'none' } }],
    ['a Ready node', node, { exists: true, ready: true, platform: 'linux-amd64' }],
    ['a node that is not', buildNode('w1', {}, 'False'), { exists: true, ready: false }],
    [
      'a node of which nobody knows',
      withConditions([{ type: 'Ready', status: 'Unknown' }]),
      { ready: false },
    ],
    [
      'another condition',
      withConditions([{ type: 'DiskPressure', status: 'True' }]),
      { ready: undefined },
    ],
    [
      'since when it is Ready',
      withConditions([{ type: 'Ready', status: 'True', lastTransitionTime: later(0) }]),
      { ready: true, readySince: later(0) },
    ],
    ['an object without status', { metadata: node.metadata }, { exists: true, ready: undefined }],
    [
      'what it answers',
      withAnswer(node, { kind: 'sent', attempt: later(0), since: later(0) }),
      {
        observation: { kind: 'sent', attempt: later(0), since: later(0) },
      },
    ],
  ])('%s', (_name, object, wanted) => {
    expect(factsOf(object)).toEqual(expect.objectContaining(wanted));
  });
});

test.each([
  ['both labels', { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'arm64' }, 'linux-arm64'],
  ['no system', { 'kubernetes.io/arch': 'arm64' }, undefined],
  ['no architecture', { 'kubernetes.io/os': 'linux' }, undefined],
  ['an empty one', { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': '' }, undefined],
  ['no labels', undefined, undefined],
])('the platform of an object with %s', (_name, labels, platform) => {
  expect(platformOf({ metadata: { name: 'n', ...(labels ? { labels } : {}) } })).toBe(platform);
});

test.each([
  [
    'counted, by whatever object their kind is given',
    [{ resource: { ...nodes }, isRelevant }],
    ['w1'],
  ],
  ['not counted where they are not watched', [], undefined],
])('nodes are %s', (_name, watched, names) => {
  const dialect = { ...tableDialect, watched };
  const {
    cluster: { fleet },
  } = gather(dialect, buildTablePlan({ workers: ['w1'] }), buildWorld([], [node]), T0);
  expect(fleet?.map(({ metadata }) => metadata.name)).toEqual(names);
});

test.each<[string, Readonly<Record<string, number>>, Readonly<Record<string, number>>]>([
  ['one node alone proves nothing', { w1: 5 }, {}],
  ['the longest time does not count', { w1: 5, w2: 9 }, { '0/workers': 5 }],
  ['of three nodes, the second', { w1: 5, w2: 9, w3: 7 }, { '0/workers': 7 }],
  ['no node has any', {}, {}],
])('what is known of earlier upgrades of a stage: %s', (_, times, expected) => {
  const workers = ['w1', 'w2', 'w3'];
  const dialect = {
    ...tableDialect,
    signal: {
      ...tableDialect.signal,
      earlierMs: (_world: World, _rollout: Rollout, _stage: Stage, { name }: Target) =>
        ownMember(times, name),
    },
  };
  const world = buildWorld(
    [],
    workers.map((name) => buildNode(name)),
  );
  const { pace, targets } = gather(dialect, buildTablePlan({ workers }), world, T0);
  expect(pace).toEqual({ kind: 'earlier', mostMsByStage: expected });
  expect(targets.earlierMsOf('0/worker/w1')).toBe(times['w1']);
});
