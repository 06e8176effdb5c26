/** Tests which targets a target waits for in an ordered stage, and the sentence about this wait. */
import { expect, test } from 'vitest';
import type { SnapshotChanges } from '../../../test/support/builders/parts.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot, type KnownFacts } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { UNASKED } from '../model/asked.ts';
import type { RecordedState, Stage } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { groupsOf, orderCheck } from './order.ts';

const zone = (value: string): KnownFacts => ({ labels: { zone: value } });
const MANAGED: KnownFacts = { labels: { 'node-role.kubernetes.io/control-plane': '' } };
const BY_ZONE = { order: ['zone'] };
const ENDS = 'those nodes are done; for a failed one run refit retry NODE';

interface Scene {
  readonly states: Readonly<Record<string, RecordedState>>;
  readonly facts?: Readonly<Record<string, KnownFacts>>;
  readonly policy?: Partial<RolloutPolicy>;
  readonly stage?: Partial<Stage>;
  readonly parts?: SnapshotChanges;
}

function contextOf({ states, facts = {}, policy = {}, stage: more = {}, parts }: Scene) {
  const targets = Object.entries(states).map(([name, state]) => buildTarget(name, state));
  const stage = buildStage('worker', targets, more);
  const snapshot = withParts(buildSnapshot(buildRollout([stage]), facts), parts);
  return { snapshot, policy: buildPolicy({ name: 'slow', ...policy }), now: T0, stage };
}

/** Returns the wait of the target; undefined if the order lets it start. */
function waitOf(scene: Scene, name: string) {
  const { stage, ...context } = contextOf(scene);
  const target = stage.targets.find((each) => each.name === name);
  return target && orderCheck(context, stage)(target);
}

function groupsIn(scene: Scene): string[][] {
  const { stage, ...context } = contextOf(scene);
  return groupsOf(context, stage, stage.targets).map((group) => group.map(({ name }) => name));
}

const TWO_ZONES = { w1: zone('b'), w2: zone('a') };

test('a target of a later group waits for each open target of earlier groups', () => {
  const states = { w1: 'pending', w2: 'pending', w3: 'done', w4: 'pending' } as const;
  const facts = { ...TWO_ZONES, w3: zone('a'), w4: zone('c') };
  expect(waitOf({ states, facts, policy: BY_ZONE }, 'w4')).toEqual({
    kind: 'wait',
    reason: {
      code: 'EarlierNodes',
      message: 'w4 comes after w1, w2 in the order of UpgradePolicy slow',
    },
    ends: ENDS,
    after: ['w1', 'w2'],
    gate: 'order',
    ofRollout: true,
  });
  expect(waitOf({ states, facts, policy: BY_ZONE }, 'w2')).toBeUndefined();
});

test('the wait passes by itself while one of the earlier targets is in progress', () => {
  const states = { w1: 'pending', w2: 'intended', w3: 'pending' } as const;
  const facts = { ...TWO_ZONES, w3: zone('a') };
  expect(waitOf({ states, facts, policy: BY_ZONE }, 'w1')).toMatchObject({ isPassing: true });
});

test('a wait names at most ten of the earlier targets', () => {
  const early = Array.from({ length: 12 }, (_, index) => `a${index}`);
  const states = Object.fromEntries([...early, 'w1'].map((name) => [name, 'pending' as const]));
  const facts = { ...Object.fromEntries(early.map((name) => [name, zone('a')])), w1: zone('b') };
  const wait = waitOf({ states, facts, policy: BY_ZONE }, 'w1');
  expect(wait).toMatchObject({ after: early.slice(0, 10) });
});

test('a target waits for one of a later group that already works', () => {
  const states = { w1: 'intended', w2: 'pending' } as const;
  const scene = { states, facts: TWO_ZONES, policy: BY_ZONE };
  expect(waitOf(scene, 'w2')).toMatchObject({
    reason: {
      message: 'w2 waits for w1, which started earlier than `order` of UpgradePolicy slow says',
    },
    isPassing: true,
    after: ['w1'],
  });
  // A target of its own group that works does not keep it from starting.
  expect(waitOf({ ...scene, facts: { w1: zone('a'), w2: zone('a') } }, 'w2')).toBeUndefined();
});

test('a wait for an earlier wave names the waves', () => {
  const waves = [{ selector: { matchLabels: { zone: 'a' } } }];
  const states = { w1: 'pending', w2: 'pending' } as const;
  expect(waitOf({ states, facts: TWO_ZONES, policy: { waves } }, 'w1')?.reason.message).toBe(
    'w1 comes after w2 in the waves of UpgradePolicy slow',
  );
});

test.each<[string, Partial<Scene>, string]>([
  ['', {}, 'w1 comes after c1: nodes of the control plane start first, one at a time'],
  [
    ', also if the target started before it',
    { states: { w1: 'pending', c1: 'pending', c2: 'intended' } },
    'c1 comes after c2: nodes of the control plane start first, one at a time',
  ],
])('a worker waits for nodes of the control plane%s', (_title, more, message) => {
  const states = { w1: 'pending', c1: 'pending' } as const;
  const facts = { c1: MANAGED, c2: MANAGED };
  const scene = { states, facts, stage: { controlPlaneFirst: true }, ...more };
  const waiting = message.split(' ', 1)[0] ?? '';
  expect(waitOf(scene, waiting)?.reason.message).toBe(message);
});

test('what ends the wait names the way in which the dialect tries nodes again', () => {
  const parts = { abilities: { retriedBy: 'run the program again' } };
  const states = { w1: 'pending', w2: 'pending' } as const;
  expect(waitOf({ states, facts: TWO_ZONES, policy: BY_ZONE, parts }, 'w1')).toMatchObject({
    ends: 'those nodes are done; for a failed one run the program again',
  });
});

test.each<[string, boolean, Scene]>([
  ['is skipped', false, { states: { w1: 'pending', w2: 'skipped' } }],
  ['is done', false, { states: { w1: 'pending', w2: 'done' } }],
  ['failed', true, { states: { w1: 'pending', w2: 'failed' } }],
  [
    'failed within the failure budget',
    false,
    { states: { w1: 'pending', w2: 'failed' }, policy: { maxFailures: 1 } },
  ],
  [
    'is a failed node of the control plane, whatever the failure budget',
    true,
    { states: { w1: 'pending', w2: 'failed' }, policy: { maxFailures: 1 }, facts: { w2: MANAGED } },
  ],
  [
    'failed within the failure budget and is tried again',
    true,
    {
      states: { w1: 'pending', w2: 'failed' },
      policy: { maxFailures: 1, retry: { attempts: 2, backoffMs: MINUTE } },
      parts: { abilities: { canRetry: true } },
    },
  ],
  [
    'is held',
    false,
    {
      states: { w1: 'pending', w2: 'pending' },
      facts: { w1: zone('b'), w2: { ...zone('a'), hold: { by: 'ann', reason: 'disk' } } },
    },
  ],
  [
    'is held, but has started',
    true,
    {
      states: { w1: 'pending', w2: 'intended' },
      facts: { w1: zone('b'), w2: { ...zone('a'), hold: { by: 'ann', reason: 'disk' } } },
    },
  ],
  [
    'is a held node of the control plane',
    true,
    {
      states: { w1: 'pending', w2: 'pending' },
      facts: { w1: zone('b'), w2: { ...MANAGED, hold: { by: 'ann', reason: 'disk' } } },
    },
  ],
  [
    'failed beyond the budget of its wave, but within that of the plan',
    true,
    {
      states: { w1: 'pending', w2: 'failed' },
      policy: {
        order: [],
        maxFailures: 1,
        waves: [{ selector: { matchLabels: { zone: 'a' } }, maxFailures: { nodes: 0 } }],
      },
    },
  ],
])('a later target waits if the earlier one %s: %s', (_title, waits, scene) => {
  const given = { facts: TWO_ZONES, ...scene, policy: { ...BY_ZONE, ...scene.policy } };
  expect(waitOf(given, 'w1') !== undefined).toBe(waits);
});

test('a stage without order, waves and control plane first lets each target start', () => {
  const states = { w1: 'pending', w2: 'pending' } as const;
  expect(waitOf({ states, facts: { w2: MANAGED } }, 'w1')).toBeUndefined();
  expect(groupsIn({ states, facts: { w2: MANAGED } })).toEqual([['w1', 'w2']]);
});

test('a target that comes next in the order waits until pods of budgets are counted', () => {
  const drain = { ...buildPolicy().drain, startsWithFewest: true };
  const parts = { outside: { budgetPods: UNASKED } };
  const states = { w1: 'pending' } as const;
  for (const policy of [{ drain }, { drain, ...BY_ZONE }])
    expect(waitOf({ states, policy, parts }, 'w1')).toMatchObject({
      reason: { code: 'OrderUnknown' },
    });
});

test.each<[string, Scene, string[][]]>([
  [
    'the values of a label in alphabetical order, and nodes without the label last',
    {
      states: { w1: 'pending', w2: 'pending', w3: 'pending', w4: 'pending' },
      facts: { w2: zone('b'), w3: zone('a'), w4: zone('b') },
      policy: BY_ZONE,
    },
    [['w3'], ['w2', 'w4'], ['w1']],
  ],
  [
    'the nodes with a value of a label before all others',
    {
      states: { w1: 'pending', w2: 'pending', w3: 'pending' },
      facts: { w1: zone('a'), w2: zone('b') },
      policy: { order: ['zone=b'] },
    },
    [['w2'], ['w1', 'w3']],
  ],
  [
    'a second label within the groups of the first',
    {
      states: { w1: 'pending', w2: 'pending', w3: 'pending' },
      facts: {
        w1: { labels: { zone: 'a', disk: 'old' } },
        w2: { labels: { zone: 'b', disk: 'new' } },
        w3: { labels: { zone: 'a', disk: 'new' } },
      },
      policy: { order: ['zone', 'disk'] },
    },
    [['w3'], ['w1'], ['w2']],
  ],
  [
    'each node of the control plane by its name, before workers',
    {
      states: { w1: 'pending', c2: 'pending', c1: 'pending' },
      facts: { c1: MANAGED, c2: MANAGED },
      stage: { controlPlaneFirst: true },
    },
    [['c1'], ['c2'], ['w1']],
  ],
  [
    'the order within each wave',
    {
      states: { w1: 'pending', w2: 'pending', w3: 'pending' },
      facts: {
        w1: { labels: { zone: 'a' } },
        w2: { labels: { zone: 'b', canary: 'true' } },
        w3: { labels: { zone: 'c', canary: 'true' } },
      },
      policy: { order: ['zone'], waves: [{ selector: { matchLabels: { canary: 'true' } } }] },
    },
    [['w2'], ['w3'], ['w1']],
  ],
  [
    'waves by their numbers, also the eleventh',
    {
      states: Object.fromEntries(
        Array.from({ length: 12 }, (_, index) => [`w${11 - index}`, 'pending' as const]),
      ),
      facts: Object.fromEntries(
        Array.from({ length: 12 }, (_, index) => [`w${index}`, zone(`${index}`)]),
      ),
      policy: {
        waves: Array.from({ length: 12 }, (_, index) => ({
          selector: { matchLabels: { zone: `${index}` } },
        })),
      },
    },
    Array.from({ length: 12 }, (_, index) => [`w${index}`]),
  ],
])('the groups of a stage are %s', (_title, scene, expected) => {
  expect(groupsIn(scene)).toEqual(expected);
});
