/**
 * Tests `drain.startWith`: within each group, the workers with the fewest pods that PodDisruptionBudgets cover start
 * first. `spread` is applied after that.
 */

import { expect, test } from 'vitest';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import { growthOf } from '../../../test/support/growth.ts';
import { turnFromJson, turnToJson } from '../../../test/support/turn-json.ts';
import { answered, UNASKED } from '../model/asked.ts';
import type { Role } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { DEFAULT_POLICY, type RolloutPolicy } from '../policy/rollout-policy.ts';
import { needsBudgetPods } from './fewest-first.ts';
import { groupsOf } from './order.ts';
import { chooseTargets } from './slots.ts';

const ASKS = { drain: { ...DEFAULT_POLICY.drain, startsWithFewest: true } } as const;
const CONTROL_PLANE = { 'node-role.kubernetes.io/control-plane': '' };
const LABELS: Readonly<Record<string, Record<string, string>>> = {
  w1: { zone: 'a' },
  w2: { zone: 'a', early: 'true' },
  w3: { zone: 'b' },
  w4: { zone: 'b', early: 'true' },
  w5: { zone: 'a' },
};
const NUMBERS = { w1: 3, w2: 2, w3: 2, w4: 1 };

interface Scene {
  readonly policy?: Partial<RolloutPolicy>;
  readonly numbers?: Readonly<Record<string, number>>;
  readonly budgetPods?: Snapshot['outside']['budgetPods'];
  readonly labels?: Readonly<Record<string, Record<string, string>>>;
  readonly role?: Role;
}

function contextOf({ policy = {}, numbers = NUMBERS, labels = LABELS, ...more }: Scene) {
  const counted = answered({ byNode: new Map(Object.entries(numbers)) });
  const { role = 'worker', budgetPods = counted } = more;
  const stage = buildStage(role, Object.keys(labels));
  const facts = Object.fromEntries(
    Object.entries(labels).map(([name, own]) => [name, { labels: own }]),
  );
  const snapshot = withParts(buildSnapshot(buildRollout([stage]), facts), {
    outside: { budgetPods },
  });
  const rules = buildPolicy({ name: 'careful', ...ASKS, ...policy });
  return { stage, context: { snapshot, policy: rules, now: T0 } };
}

function orderOf(scene: Scene): string {
  const { stage, context } = contextOf(scene);
  const groups = groupsOf(context, stage, stage.targets);
  return groups.map((group) => group.map(({ name }) => name).join(' ')).join(' | ');
}

test.each<[string, Scene, string]>([
  ['nobody asks for it', { policy: { drain: DEFAULT_POLICY.drain } }, 'w1 w2 w3 w4 w5'],
  ['the fewest first, and equals as they were', {}, 'w5 w4 w2 w3 w1'],
  ['all numbers are equal', { numbers: { w1: 1, w2: 1, w3: 1, w4: 1, w5: 1 } }, 'w1 w2 w3 w4 w5'],
  ['there are no such pods', { numbers: {} }, 'w1 w2 w3 w4 w5'],
  ['numbers, not texts, are compared', { numbers: { ...NUMBERS, w5: 10 } }, 'w4 w2 w3 w1 w5'],
  ['nothing is counted yet', { budgetPods: UNASKED }, 'w1 w2 w3 w4 w5'],
  [
    'no attempt has succeeded',
    { budgetPods: answered({ problem: 'forbidden' }) },
    'w1 w2 w3 w4 w5',
  ],
  [
    'former numbers after a failed attempt',
    { budgetPods: answered({ byNode: new Map([['w1', 1]]), problem: 'forbidden' }) },
    'w2 w3 w4 w5 w1',
  ],
  ['inside the groups of `order`', { policy: { order: ['early=true'] } }, 'w4 w2 | w5 w3 w1'],
  [
    'inside the waves',
    { policy: { waves: [{ selector: { matchLabels: { zone: 'a' } } }, {}] } },
    'w5 w2 w1 | w4 w3',
  ],
  ['`spread` takes turns after it', { policy: { spread: 'zone' } }, 'w5 w4 w2 w3 w1'],
  [
    '`spread` begins with the domain of the first worker',
    { policy: { spread: 'zone' }, numbers: { ...NUMBERS, w5: 4 } },
    'w4 w2 w3 w1 w5',
  ],
  [
    'nodes of the control plane keep their places',
    { labels: { w1: {}, c1: CONTROL_PLANE, w2: {}, c2: CONTROL_PLANE }, numbers: { w1: 1, c1: 9 } },
    'w2 c1 w1 c2',
  ],
  ['controllers are not reordered', { role: 'controller' }, 'w1 w2 w3 w4 w5'],
])('the order of workers by the number of their pods if %s', (_name, scene, order) =>
  expect(orderOf(scene)).toBe(order),
);

test('a target with another name than its Node is ordered by the number of its Node', () => {
  const { stage, context } = contextOf({ numbers: { 'node-of-w1': 1 } });
  const nodeNameOf = (key: string): string => `node-of-${key.split('/').at(-1)}`;
  const targets = { ...context.snapshot.targets, nodeNameOf };
  const snapshot = { ...context.snapshot, targets };
  const [group = []] = groupsOf({ ...context, snapshot }, stage, stage.targets);
  expect(group.map(({ name }) => name)).toEqual(['w2', 'w3', 'w4', 'w5', 'w1']);
});

test.each<[string, Scene, string[], string[]]>([
  ['counted', {}, ['w5', 'w4'], []],
  ['not counted yet', { budgetPods: UNASKED }, [], ['w1: OrderUnknown']],
  [
    'not counted yet, in groups',
    { budgetPods: UNASKED, policy: { order: ['early=true'] } },
    [],
    ['w2: OrderUnknown'],
  ],
  [
    'not counted, and never will be',
    { budgetPods: answered({ problem: 'forbidden' }) },
    ['w1', 'w2'],
    [],
  ],
  [
    'nobody asks for it',
    { budgetPods: UNASKED, policy: { drain: DEFAULT_POLICY.drain } },
    ['w1', 'w2'],
    [],
  ],
  ['controllers', { budgetPods: UNASKED, role: 'controller' }, ['w1', 'w2'], []],
  [
    'a node of the control plane',
    { budgetPods: UNASKED, labels: { c1: CONTROL_PLANE, w1: {} } },
    ['c1'],
    ['w1: OrderUnknown'],
  ],
])('whether workers start before their pods are counted: %s', (_name, scene, starts, waits) => {
  const { stage, context } = contextOf(scene);
  const { chosen, waiting } = chooseTargets(context, stage, stage.targets, 2);
  expect(chosen.map(({ name }) => name)).toEqual(starts);
  expect(waiting.map(({ target, reason }) => `${target.name}: ${reason.code}`)).toEqual(waits);
});

test('the wait for the first numbers of pods passes, and says what it is for', () => {
  const { stage, context } = contextOf({ budgetPods: UNASKED });
  const { waiting } = chooseTargets(context, stage, stage.targets, 1);
  expect(waiting[0]).toMatchObject({
    gate: 'order',
    isPassing: true,
    ends: 'the pods are counted',
  });
  expect(waiting[0]?.reason.message).toContain('`drain.startWith` of UpgradePolicy careful');
});

test('a turn that was written as JSON has the same order', () => {
  const { stage, context } = contextOf({});
  const back = turnFromJson(turnToJson(context));
  expect(back.snapshot.outside.budgetPods).toEqual(context.snapshot.outside.budgetPods);
  expect(groupsOf(back, stage, stage.targets)).toEqual(groupsOf(context, stage, stage.targets));
});

test('numbers are needed only while a worker is left to start', () => {
  const { context } = contextOf({});
  const { snapshot, policy } = context;
  const { rollout } = snapshot;
  const done = rollout.stages.map((stage) => ({
    ...stage,
    targets: stage.targets.map((target) => ({ ...target, state: 'done' as const })),
  }));
  const needs = (more: Partial<Snapshot['rollout']>, rules = policy): boolean =>
    needsBudgetPods({ ...snapshot, rollout: { ...rollout, ...more } }, rules);
  expect(needs({})).toBe(true);
  expect(needs({ stages: done })).toBe(false);
  expect(needs({ phase: 'failed' })).toBe(false);
  expect(needs({}, buildPolicy())).toBe(false);
  expect(needs({ stages: contextOf({ role: 'controller' }).context.snapshot.rollout.stages })).toBe(
    false,
  );
});

test('the order of 15,000 workers, all with other numbers, takes no time that is quadratic', () => {
  const sceneOf = (count: number) => {
    const names = Array.from({ length: count }, (_, index) => `w${index}`);
    const labels = Object.fromEntries(names.map((name) => [name, {}]));
    const numbers = Object.fromEntries(names.map((name, index) => [name, (index * 7919) % count]));
    return { numbers, ...contextOf({ labels, numbers }) };
  };
  const scenes = new Map([937, 937 * 16].map((count) => [count, sceneOf(count)]));
  const sort = (count: number): void => {
    const { stage, context, numbers } = scenes.get(count) ?? sceneOf(count);
    const [group = []] = groupsOf(context, stage, stage.targets);
    expect(group.slice(0, 3).map(({ name }) => numbers[name])).toEqual([0, 1, 2]);
  };
  expect(growthOf(sort, 937, 16, 64)).toBeLessThan(64);
});
