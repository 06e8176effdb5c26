/**
 * Tests that the order of an UpgradePolicy applies to every dialect: the nodes of the toy start group by group, and the
 * control plane one node at a time.
 */
import { expect, test } from 'vitest';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import { type Target, targetsIn, withTargets } from '../../src/engine/model/rollout.ts';
import { readPolicy } from '../../src/engine/policy/read-policy.ts';
import { gather } from '../../src/engine/snapshot/gather.ts';
import { nodes } from '../../src/kube/resources.ts';
import { decide } from '../support/builders/decisions.ts';
import { buildNode } from '../support/builders/nodes.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { buildWorldOf } from '../support/builders/worlds-of-kinds.ts';
import { T0 } from '../support/clock/times.ts';
import { toy } from './toy-dialect.ts';

const ZONE = 'topology.kubernetes.io/zone';
const CONTROL_PLANE = 'node-role.kubernetes.io/control-plane';
/** The plan lists the nodes in this order: workers come first, and the zones are mixed. */
const HOSTS: Readonly<Record<string, Record<string, string>>> = {
  w1: { [ZONE]: 'b' },
  w2: { [ZONE]: 'a', canary: 'false' },
  w3: {},
  w4: { [ZONE]: 'a', canary: 'true' },
  c1: { [ZONE]: 'b', [CONTROL_PLANE]: '' },
  w5: { [ZONE]: 'b' },
  c2: { [ZONE]: 'a', [CONTROL_PLANE]: 'true' },
};
const world = buildWorldOf([
  nodes,
  ['first', ...Object.keys(HOSTS)].map((name) => buildNode(name, { labels: HOSTS[name] ?? {} })),
]);

/** The plan after its first stage, with nodes in these states. */
function planWith(states: Readonly<Record<string, Target['state']>>) {
  const names = { first: 'first', rest: Object.keys(HOSTS).join(' ') };
  const metadata = { name: 'painting', uid: 'u1', creationTimestamp: '2026-11-20T08:00:00Z' };
  const plan = { metadata, data: { colour: 'blue', atOnce: '2', record: '', ...names } };
  const found = { ...toy.resolve(plan, world, T0), phase: 'running' as const };
  const settled = targetsIn(found, 'pending').map((target) => ({
    ...target,
    state: states[target.name] ?? 'pending',
  }));
  return toy.project(
    withTargets(found, [...settled, { ...(found.stages[0]?.targets[0] as Target), state: 'done' }]),
    plan,
    T0,
  );
}

function decideWith(spec: UpgradePolicySpec, states: Readonly<Record<string, Target['state']>>) {
  const policy = readPolicy(buildUpgradePolicy('ordered', spec));
  expect(policy.problems).toEqual([]);
  return decide(gather(toy, planWith(states), world, T0), policy, T0);
}

/** Returns the names of the nodes that start together. A group starts when the group before it is done. */
function startsOf(spec: UpgradePolicySpec): string[] {
  const states: Record<string, Target['state']> = {};
  const starts: string[] = [];
  for (;;) {
    const { record } = decideWith(spec, states);
    const started = targetsIn(record ?? { stages: [] }, 'intended').map(({ name }) => name);
    if (started.length === 0) return starts;
    starts.push(started.join(' '));
    for (const name of started) states[name] = 'done';
  }
}

test.each<[string, UpgradePolicySpec, string[]]>([
  ['none: as the plan lists them', {}, ['w1 w2', 'w3 w4', 'c1 w5', 'c2']],
  [
    'control planes first, each alone',
    { order: [CONTROL_PLANE] },
    ['c1', 'c2', 'w1 w2', 'w3 w4', 'w5'],
  ],
  ['zone after zone', { order: [ZONE] }, ['c2', 'c1', 'w2 w4', 'w1 w5', 'w3']],
  [
    'a canary, then the zones',
    { order: ['canary=true', ZONE] },
    ['c2', 'c1', 'w4', 'w2', 'w1 w5', 'w3'],
  ],
  ['a label by its value', { order: ['canary'] }, ['c1', 'c2', 'w2', 'w4', 'w1 w3', 'w5']],
  ['an empty order: the control plane first', { order: [] }, ['c1', 'c2', 'w1 w2', 'w3 w4', 'w5']],
])('nodes start in the order of the UpgradePolicy: %s', (_name, spec, starts) =>
  expect(startsOf(spec)).toEqual(starts),
);

const DONE = { c1: 'done', c2: 'done' } as const;

test.each<
  [
    string,
    UpgradePolicySpec,
    Readonly<Record<string, Target['state']>>,
    string[],
    string | undefined,
  ]
>([
  [
    'a slot that is free waits for the zone',
    {},
    { ...DONE, w2: 'done', w4: 'intended' },
    [],
    'w1 comes after w4 in the order of UpgradePolicy ordered',
  ],
  ['one of the zone that is left takes it', {}, { ...DONE, w4: 'intended' }, ['w2'], undefined],
  [
    'within the failure budget the next zone starts',
    { failureBudget: 1 },
    { ...DONE, w2: 'failed', w4: 'done' },
    ['w1', 'w5'],
    undefined,
  ],
  [
    'a control plane that comes first now waits for the later one at work',
    {},
    { c1: 'intended' },
    [],
    'c2 waits for c1, which started earlier than `order` of UpgradePolicy ordered says',
  ],
  [
    'a node that is tried again waits for the later zone at work',
    { failureBudget: 1 },
    { ...DONE, w4: 'done', w1: 'intended' },
    [],
    'w2 waits for w1, which started earlier than `order` of UpgradePolicy ordered says',
  ],
  [
    'not after a failed control plane',
    { failureBudget: 9 },
    { c2: 'failed', c1: 'done' },
    [],
    'w2 comes after c2 in the order of UpgradePolicy ordered',
  ],
])('%s', (_name, more, states, started, waits) => {
  const { record, waits: told } = decideWith({ order: [ZONE], ...more }, states);
  const before = Object.keys(states).filter((name) => states[name] === 'intended');
  const names = record ? targetsIn(record, 'intended').map(({ name }) => name) : before;
  expect(names.filter((name) => !before.includes(name))).toEqual(started);
  expect(told.find(({ gate }) => gate === 'order')?.reason.message).toBe(waits);
});

test('what holds a later group for good is reported, what passes is not', () => {
  const blockedBy = (state: Target['state']) =>
    decideWith({ order: [ZONE], failureBudget: 9 }, { c1: 'done', c2: state }).record?.blocked;
  expect([blockedBy('failed'), blockedBy('intended')]).toEqual([true, undefined]);
});
