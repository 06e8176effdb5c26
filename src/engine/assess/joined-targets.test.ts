/** Tests nodes that join after their plan began: which nodes are included, which nodes are left out, and why. */

import { describe, expect, test } from 'vitest';
import { type SnapshotChanges, withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot, buildTargets } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import { growthOf } from '../../../test/support/growth.ts';
import type { TargetFacts } from '../model/facts.ts';
import type { JoinedTarget } from '../model/joined-target.ts';
import { inState, type RecordedState, type Role, type Rollout } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { planEvents } from '../report/events.ts';
import { settle } from './advance.ts';
import { assess } from './assess.ts';
import { joinedNodes } from './joined-targets.ts';

const INCLUDE: Partial<RolloutPolicy> = { includesNew: true };

interface Scene {
  readonly controllers?: RecordedState;
  readonly workers?: RecordedState;
  readonly phase?: Rollout['phase'];
  readonly policy?: Partial<RolloutPolicy>;
  readonly role?: Role;
  readonly stage?: string;
  readonly facts?: Partial<TargetFacts>;
  readonly obstacle?: string;
  readonly more?: SnapshotChanges;
}

function assessmentOf(scene: Scene) {
  const { controllers = 'done', workers = 'pending', role = 'worker', obstacle } = scene;
  const { phase = 'running', policy = INCLUDE, stage = `0/${role}s` } = scene;
  const rollout = buildRollout(
    [
      buildStage('controller', [buildTarget('c1', controllers)]),
      buildStage('worker', [buildTarget('w1', workers)]),
    ],
    { phase },
  );
  const target = { ...buildTarget('n9'), key: `0/${role}/n9` };
  const joined: JoinedTarget = { stage, role, target, ...(obstacle !== undefined && { obstacle }) };
  const snapshot = buildSnapshot(rollout);
  const known = rollout.stages.flatMap((each) => each.targets).map(({ key }) => [key, {}] as const);
  const targets = buildTargets({ ...Object.fromEntries(known), [target.key]: scene.facts ?? {} });
  const changed = withParts(snapshot, { targets, plan: { joined: [joined] } }, scene.more);
  return assess(changed, buildPolicy(policy), T0);
}

function namesAfter(scene: Scene): string[] {
  const { rollout } = settle(assessmentOf(scene)).snapshot;
  return rollout.stages.flatMap(({ targets }) => targets.map(({ name }) => name));
}

const NEXT = 'apply the plan again once it has ended';
const LEFT = 'n9 joined after the plan began and is not included: ';

describe('a node that is left out, and why', () => {
  test.each<[string, Scene, string]>([
    [
      'without a rule',
      { policy: {} },
      'a plan keeps the nodes that it started with, unless newNodes of its policy is Include',
    ],
    [
      'a controller, although workers wait',
      { role: 'controller', controllers: 'pending' },
      'controllers are never added to a plan that runs',
    ],
    [
      'a controller after workers began',
      { role: 'controller', workers: 'intended' },
      'controllers are never added to a plan that runs',
    ],
    [
      'a worker of a stage that is over',
      { stage: '0/controllers', workers: 'intended' },
      'a later stage than the controllers of spec.commands[0] has begun',
    ],
    [
      'a node of another platform',
      { facts: { platform: 'linux-s390x' } },
      'n9 is linux-s390x; the plan has downloads for linux-amd64: add the platform of the node to the plan, or leave the node out',
    ],
    ['no room', { obstacle: 'the record is full' }, 'the record is full'],
    [
      'a stage that was removed',
      { stage: '7/workers' },
      'the plan no longer has the command of this node',
    ],
  ])('%s', (_, scene, cause) => {
    const [node] = joinedNodes(assessmentOf(scene));
    const todo =
      scene.role === 'controller' ? `install n9 with the version of the plan, or ${NEXT}` : NEXT;
    expect(node?.reason).toEqual({ code: 'NodeLeftOut', message: `${LEFT}${cause}; ${todo}` });
    expect(namesAfter(scene)).toEqual(['c1', 'w1']);
  });
});

test.each<[string, Scene]>([
  ['while controllers are in progress', { controllers: 'intended' }],
  ['while workers are in progress', { workers: 'intended' }],
  ['when all workers are done', { workers: 'done' }],
])('a worker is included %s', (_, scene) => {
  expect(namesAfter(scene)).toEqual(['c1', 'w1', 'n9']);
  const settled = settle(assessmentOf(scene));
  expect(joinedNodes(settled)).toEqual([]);
  expect(settled.snapshot.rollout.phase).toBe('running');
});

test('a node that joined starts after the controllers, and only if its stage has a free slot', () => {
  const startedOf = (scene: Scene): string[] =>
    settle(assessmentOf(scene)).snapshot.rollout.stages.flatMap((stage) =>
      inState(stage, 'intended').map(({ name }) => name),
    );
  expect(startedOf({ controllers: 'intended' })).toEqual(['c1']);
  expect(startedOf({ workers: 'intended' })).toEqual(['w1']);
  expect(startedOf({ workers: 'done' })).toEqual(['n9']);
});

test.each<[string, Scene]>([
  ['a plan after its end', { phase: 'done', workers: 'done' }],
  ['with the version of the plan', { facts: { isThere: true } }],
])('nothing is said or done about a node that joined %s', (_, scene) => {
  expect(joinedNodes(assessmentOf(scene))).toEqual([]);
  expect(namesAfter(scene)).toEqual(['c1', 'w1']);
});

test('a plan that stops takes up no node', () => {
  expect(namesAfter({ workers: 'failed', policy: INCLUDE })).toEqual(['c1', 'w1']);
});

test('an Event says that a node was included', () => {
  const assessment = assessmentOf({ workers: 'intended' });
  const after = settle(assessment).snapshot.rollout;
  expect(planEvents(assessment.snapshot.rollout, after)).toEqual([
    {
      type: 'Normal',
      reason: {
        code: 'NodeIncluded',
        message: 'n9 joined after the plan began and is included, as newNodes of the policy says',
      },
    },
  ]);
});

test('nothing is said about nodes that join before the plan begins', () => {
  expect(joinedNodes(assessmentOf({ phase: 'new' }))).toEqual([]);
});

test('to judge many joined nodes costs no more for each of them than to judge few', () => {
  const judgeAll = (count: number): void => {
    const names = Array.from({ length: count }, (_, index) => `n${index}`);
    const targets = names.map((name) => buildTarget(name));
    const stages = [
      buildStage('worker', targets),
      { ...buildStage('worker', targets), id: '1/workers' },
    ];
    const joined = names.map((name): JoinedTarget => {
      const target = { ...buildTarget(name), key: `joined/${name}` };
      return { stage: stages[0]?.id ?? '', role: 'worker', target };
    });
    const known = Object.fromEntries(joined.map(({ target }) => [target.key, {}]));
    const snapshot = withParts(buildSnapshot(buildRollout(stages)), {
      targets: buildTargets(known),
      plan: { joined },
    });
    const nodes = joinedNodes(assess(snapshot, buildPolicy(INCLUDE), T0));
    expect(nodes.filter(({ isIncluded }) => isIncluded)).toHaveLength(count);
  };
  // With 16 times as many nodes, work that grows quadratically would take 256 times as long.
  expect(growthOf(judgeAll, 1_000, 16, 64)).toBeLessThan(64);
});
