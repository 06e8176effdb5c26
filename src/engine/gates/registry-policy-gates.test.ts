/** Tests the gates of a policy and their messages. */

import { expect, test } from 'vitest';
import { said } from '../../../test/support/builders/gate-inputs.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildFacts, buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { Node } from '../../kube/resources.ts';
import { rfc3339 } from '../../util/clock.ts';
import type { Blackout, MaintenanceWindow } from '../../util/maintenance-windows.ts';
import { NO_CONTROLS } from '../model/controls.ts';
import { because } from '../model/reasons.ts';
import { DEFAULT_POLICY, type NodeLimit, type RolloutPolicy } from '../policy/rollout-policy.ts';
import { nodesAvailable } from './nodes-available.ts';
import { notPaused } from './not-paused.ts';
import { policyReadable } from './policy-readable.ts';
import { censusFor, censusOf } from './types.ts';
import { windowOpen } from './window-open.ts';

/** The input of the gate for windows, without a policy and a time. */
const ofWindow = {
  target: buildTarget('w1'),
  plan: { controls: NO_CONTROLS },
  pace: { kind: 'unknown' },
} as const;

function policy(more: Partial<RolloutPolicy> = {}): RolloutPolicy {
  return { ...DEFAULT_POLICY, name: 'nightly', ...more };
}

test('a valid policy that is not paused blocks nothing', () => {
  expect(policyReadable.evaluate({ policy: DEFAULT_POLICY })).toEqual({ kind: 'pass' });
  expect(notPaused.evaluate({ policy: DEFAULT_POLICY, plan: { controls: NO_CONTROLS } })).toEqual({
    kind: 'pass',
  });
});

test('an invalid policy blocks everything and names every field', () => {
  const problems = [
    because('PolicyUnreadable', 'spec.soak …'),
    because('PolicyUnreadable', 'spec.windows[0].length …'),
  ];
  expect(said(policyReadable.evaluate({ policy: policy({ problems }) }))).toBe(
    'wait PolicyUnreadable: spec.soak …; spec.windows[0].length …',
  );
});

test('a paused policy is named', () => {
  expect(
    said(notPaused.evaluate({ policy: policy({ paused: true }), plan: { controls: NO_CONTROLS } })),
  ).toBe('wait Paused: UpgradePolicy nightly has spec.paused: nothing new starts');
});

test('whoever holds up the plan is named', () => {
  const evaluated = notPaused.evaluate({
    policy: policy({ heldBy: 'Machine default/m1' }),
    plan: { controls: NO_CONTROLS },
  });
  expect(said(evaluated)).toBe('wait Paused: Machine default/m1 is paused: nothing new starts');
});

/**
 * The window lasts from 07:00 to 09:00 UTC: it opens one hour before the start of the test and closes one hour after
 * it.
 */
const WINDOW: MaintenanceWindow = {
  days: [],
  startMinute: 7 * 60,
  lengthMs: 2 * HOUR,
  timeZone: 'UTC',
};
const DARK: Blackout = { from: T0 - HOUR, to: T0 + 30 * MINUTE };

test.each<[string, Partial<RolloutPolicy>, number, number | undefined, string, number?]>([
  ['no windows', {}, T0, 1000 * HOUR, 'pass'],
  ['an open window, nothing measured', { windows: [WINDOW] }, T0, undefined, 'pass'],
  ['done by the very moment it closes', { windows: [WINDOW] }, T0, HOUR, 'pass'],
  [
    'done a minute late',
    { windows: [WINDOW] },
    T0,
    61 * MINUTE,
    'wait WindowTooShort: w1 takes about 1 h 1 min, and the window closes at 2026-11-20T09:00:00Z: it may start at 2026-11-21T07:00:00Z',
    23 * HOUR,
  ],
  [
    'no window is long enough',
    { windows: [WINDOW] },
    T0,
    3 * HOUR,
    'wait WindowTooShort: w1 takes about 3 h, and the window closes at 2026-11-20T09:00:00Z: no window is that long',
    HOUR,
  ],
  [
    'after the window',
    { windows: [WINDOW] },
    T0 + HOUR,
    undefined,
    'wait WindowClosed: outside of the maintenance windows of UpgradePolicy nightly: nothing starts before 2026-11-21T07:00:00Z',
    22 * HOUR,
  ],
  [
    'a window in another time zone: the time of its clock, too',
    { windows: [{ ...WINDOW, timeZone: 'Europe/Berlin' }] },
    T0 + HOUR,
    undefined,
    'wait WindowClosed: outside of the maintenance windows of UpgradePolicy nightly: nothing starts before 2026-11-21T06:00:00Z (07:00 Europe/Berlin)',
    21 * HOUR,
  ],
  ['the plan says so too', { planWindows: [WINDOW] }, T0, 1000 * HOUR, 'pass'],
  [
    'outside of what the plan says',
    { planWindows: [WINDOW] },
    T0 + HOUR,
    undefined,
    'wait WindowClosed: outside of the maintenance windows of the plan: nothing starts before 2026-11-21T07:00:00Z',
    22 * HOUR,
  ],
  [
    'inside of what the plan says, but not of what the policy says',
    { windows: [{ ...WINDOW, startMinute: 10 * 60 }], planWindows: [WINDOW] },
    T0,
    undefined,
    'wait WindowClosed: outside of the maintenance windows of UpgradePolicy nightly: nothing starts before 2026-11-20T10:00:00Z',
    2 * HOUR,
  ],
  [
    'a blackout inside of the window',
    { windows: [WINDOW], blackouts: [DARK] },
    T0,
    undefined,
    'wait Blackout: UpgradePolicy nightly has a blackout now: nothing starts before 2026-11-20T08:30:00Z',
    30 * MINUTE,
  ],
  [
    'after the window, before a blackout of next week',
    { windows: [WINDOW], blackouts: [{ from: T0 + 200 * HOUR, to: T0 + 201 * HOUR }] },
    T0 + HOUR,
    undefined,
    'wait WindowClosed: outside of the maintenance windows of UpgradePolicy nightly: nothing starts before 2026-11-21T07:00:00Z',
    22 * HOUR,
  ],
  [
    'after the window, at the very end of a blackout',
    { windows: [WINDOW], blackouts: [{ from: T0, to: T0 + HOUR }] },
    T0 + HOUR,
    undefined,
    'wait WindowClosed: outside of the maintenance windows of UpgradePolicy nightly: nothing starts before 2026-11-21T07:00:00Z',
    22 * HOUR,
  ],
  [
    'the very beginning of a blackout',
    { blackouts: [{ from: T0, to: T0 + HOUR }] },
    T0,
    undefined,
    'wait Blackout: UpgradePolicy nightly has a blackout now: nothing starts before 2026-11-20T09:00:00Z',
    HOUR,
  ],
  [
    'a blackout that comes before it would be done',
    { blackouts: [{ from: T0 + HOUR, to: T0 + 2 * HOUR }] },
    T0,
    90 * MINUTE,
    'wait WindowTooShort: w1 takes about 1 h 30 min, and the window closes at 2026-11-20T09:00:00Z: it may start at 2026-11-20T10:00:00Z',
    2 * HOUR,
  ],
])('window-open: %s', (_, more, now, expectedMs, answer, recheckMs) => {
  const verdict = windowOpen.evaluate({
    ...ofWindow,
    policy: policy(more),
    now,
    expectedMs,
  });
  expect(said(verdict)).toBe(answer);
  expect(verdict.kind === 'wait' ? verdict.recheckMs : undefined).toBe(recheckMs);
});

test.each<[string, Partial<RolloutPolicy>, number, number, string]>([
  [
    'a window of the policy',
    { windows: [WINDOW] },
    T0 + HOUR,
    0,
    'the window opens, at 2026-11-21T07:00:00Z',
  ],
  [
    'a window of the plan',
    { planWindows: [WINDOW] },
    T0 + HOUR,
    0,
    'the window opens, at 2026-11-21T07:00:00Z',
  ],
  [
    'a window in a time zone',
    { windows: [{ ...WINDOW, timeZone: 'Europe/Berlin' }] },
    T0 + HOUR,
    0,
    'the window opens, at 2026-11-21T06:00:00Z (07:00 Europe/Berlin)',
  ],
  ['a blackout', { blackouts: [DARK] }, T0, 0, 'the blackout is over, at 2026-11-20T08:30:00Z'],
  [
    'a blackout that ends before a window opens',
    { windows: [{ ...WINDOW, startMinute: 10 * 60 }], blackouts: [DARK] },
    T0,
    0,
    'a window opens after the blackout, at 2026-11-20T10:00:00Z',
  ],
  [
    'a window that is too short',
    { windows: [WINDOW] },
    T0,
    61 * MINUTE,
    'a window opens that is long enough, at 2026-11-21T07:00:00Z',
  ],
])('what ends the wait for %s, and when', (_, more, now, expectedMs, ends) => {
  const verdict = windowOpen.evaluate({
    ...ofWindow,
    policy: policy(more),
    now,
    expectedMs,
  });
  expect(verdict).toMatchObject({ ends, until: /\d{4}-\S+Z/.exec(ends)?.[0] });
});

test.each<[string, Partial<RolloutPolicy>, object, number, string]>([
  ['outside of the policy', { windows: [WINDOW] }, {}, 2 * HOUR, 'pass'],
  ['outside of the plan', { planWindows: [WINDOW] }, {}, 2 * HOUR, 'pass'],
  ['its end is exclusive', { windows: [WINDOW] }, {}, 3 * HOUR, 'wait WindowClosed'],
  ['in a blackout', { blackouts: [DARK] }, {}, 0, 'wait Blackout'],
  ['in a blackout that it names', { blackouts: [DARK] }, { blackouts: true }, 0, 'pass'],
])('window-open: a person opened the window, %s', (_, more, opening, after, answer) => {
  const openWindow = { until: rfc3339(T0 + 3 * HOUR), ...opening };
  const verdict = windowOpen.evaluate({
    ...ofWindow,
    policy: policy(more),
    now: T0 + after,
    plan: { controls: { ...NO_CONTROLS, openWindow } },
    expectedMs: 5 * HOUR,
  });
  expect(said(verdict).split(':')[0]).toBe(answer);
});

test('a node that takes longer than every window waits for a longer one, not for the end of this one', () => {
  const given = {
    ...ofWindow,
    policy: policy({ windows: [WINDOW] }),
    now: T0,
    expectedMs: 3 * HOUR,
  };
  const verdict = windowOpen.evaluate(given);
  expect(verdict).toMatchObject({ ends: 'a window of UpgradePolicy nightly is made longer' });
  expect(verdict).not.toHaveProperty('until');
});

interface Cluster {
  /** The nodes with each problem. The names of the ten nodes are `w1` to `w10`. */
  readonly notReady?: readonly string[];
  readonly cordoned?: readonly string[];
  readonly inFlight?: readonly string[];
}

function census({
  notReady = [],
  cordoned = [],
  inFlight = [],
}: Cluster): ReturnType<typeof censusOf> {
  const names = Array.from({ length: 10 }, (_, index) => `w${index + 1}`);
  const nodes = names.map((name) => ({
    metadata: { name },
    spec: { unschedulable: cordoned.includes(name) },
    status: {
      conditions: [
        { type: 'Ready', status: notReady.includes(name) ? 'Unknown' : 'True' } as const,
      ],
    },
  }));
  return censusOf(nodes, inFlight);
}

const TWO = { nodes: 2 };

test.each<[string, NodeLimit | undefined, string, Cluster, string]>([
  ['no limit', undefined, 'w1', { notReady: ['w2', 'w3', 'w4'] }, 'pass'],
  ['all well', { nodes: 1 }, 'w1', {}, 'pass'],
  ['one below the limit', TWO, 'w1', { notReady: ['w2'] }, 'pass'],
  [
    'one not Ready, one that somebody cordoned',
    TWO,
    'w1',
    { notReady: ['w2'], cordoned: ['w3'] },
    'wait TooManyUnavailable: 2 of 10 nodes are not Ready, unschedulable or at work (w2, w3); UpgradePolicy nightly allows 2',
  ],
  [
    'one in flight and Ready still',
    { nodes: 1 },
    'w1',
    { inFlight: ['w2'] },
    'wait TooManyUnavailable: 1 of 10 nodes is not Ready, unschedulable or at work (w2); UpgradePolicy nightly allows 1',
  ],
  [
    'not Ready, cordoned and in flight is one',
    TWO,
    'w1',
    { notReady: ['w2'], cordoned: ['w2'], inFlight: ['w2'] },
    'pass',
  ],
  ['it is unavailable itself', { nodes: 1 }, 'w1', { cordoned: ['w1', 'w2'] }, 'pass'],
  ['it is in flight itself', { nodes: 1 }, 'w1', { inFlight: ['w1'] }, 'pass'],
  [
    'it is in flight, and another went away before it was signalled',
    { nodes: 1 },
    'w1',
    { inFlight: ['w1'], notReady: ['w2'] },
    'wait TooManyUnavailable: 1 of 10 nodes is not Ready, unschedulable or at work (w2); UpgradePolicy nightly allows 1',
  ],
  ['a controller that is no node', { nodes: 1 }, 'c1', { notReady: ['w1', 'w2'] }, 'pass'],
  [
    'controllers in flight that are no nodes',
    { nodes: 1 },
    'w1',
    { inFlight: ['c1', 'c2'] },
    'pass',
  ],
  ['a share: two of ten', { percent: 29 }, 'w1', { notReady: ['w2'] }, 'pass'],
  [
    'a share that is rounded down',
    { percent: 29 },
    'w1',
    { notReady: ['w2', 'w3'] },
    'wait TooManyUnavailable: 2 of 10 nodes are not Ready, unschedulable or at work (w2, w3); UpgradePolicy nightly allows 2',
  ],
  ['a share of less than a node is one', { percent: 1 }, 'w1', {}, 'pass'],
  [
    'five: all are named',
    TWO,
    'w1',
    { cordoned: ['w2', 'w3', 'w4', 'w5', 'w6'] },
    'wait TooManyUnavailable: 5 of 10 nodes are not Ready, unschedulable or at work (w2, w3, w4, w5, w6); UpgradePolicy nightly allows 2',
  ],
  [
    'many: five are named',
    TWO,
    'w1',
    { cordoned: ['w2', 'w3', 'w4', 'w5', 'w6', 'w7', 'w8'] },
    'wait TooManyUnavailable: 7 of 10 nodes are not Ready, unschedulable or at work (w2, w3, w4, w5, w6 and 2 more); UpgradePolicy nightly allows 2',
  ],
])('nodes-available: %s', (_, maxUnavailable, name, seen, answer) => {
  const given = policy(maxUnavailable ? { maxUnavailable } : {});
  const verdict = nodesAvailable.evaluate({
    target: buildTarget(name),
    facts: buildFacts(),
    policy: given,
    census: census(seen),
    plan: { awaits: undefined },
  });
  expect(said(verdict)).toBe(answer);
});

test.each<[string, Node['status']]>([
  ['says nothing', undefined],
  ['has no conditions', {}],
  ['has other conditions', { conditions: [{ type: 'MemoryPressure', status: 'True' }] }],
])('a node is not Ready as long as its status %s', (_, status) => {
  const node = { metadata: { name: 'w1' }, ...(status && { status }) };
  expect([...censusOf([node], []).unavailable]).toEqual(['w1']);
});

test('nodes are counted only where the policy limits them and the leader watches them', () => {
  const snapshot = buildSnapshot(buildRollout([]));
  const fleet = [buildNode('w1')];
  expect(censusFor(withParts(snapshot, { cluster: { fleet } }), policy())).toBeUndefined();
  expect(censusFor(snapshot, policy({ maxUnavailable: TWO }))).toBeUndefined();
  expect(
    censusFor(withParts(snapshot, { cluster: { fleet } }), policy({ maxUnavailable: TWO }))?.all
      .size,
  ).toBe(1);
});

test('a controller with another name than its Node counts by its Node', () => {
  const node = { name: 'w1', unschedulable: false, cordonOwner: undefined, taintOwner: undefined };
  const input = {
    target: buildTarget('a'),
    facts: buildFacts({ node }),
    plan: { awaits: undefined },
  };
  const given = policy({ maxUnavailable: { nodes: 1 } });
  expect(
    nodesAvailable.evaluate({ ...input, policy: given, census: census({ notReady: ['w2'] }) }).kind,
  ).toBe('wait');
  const rollout = buildRollout([buildStage('controller', [buildTarget('a', 'intended')])]);
  const fleet = [buildNode('w1')];
  const snapshot = withParts(buildSnapshot(rollout, { a: { node } }), { cluster: { fleet } });
  expect([...(censusFor(snapshot, given)?.busy ?? [])]).toEqual(['w1']);
});

test('a target whose work would only wait for another plan takes no place of a limit', () => {
  const awaits = { plan: 'Plan upgrades/b', ends: 'Plan upgrades/b is complete' };
  const input = { target: buildTarget('a'), facts: buildFacts(), plan: { awaits } };
  const given = { ...input, census: census({}) };
  expect(said(nodesAvailable.evaluate({ ...given, policy: policy({ maxUnavailable: TWO }) }))).toBe(
    'wait ForeignWork: a would count against maxUnavailable while it waits for Plan upgrades/b',
  );
  expect(said(nodesAvailable.evaluate({ ...given, policy: policy() }))).toBe('pass');
  const fault = { why: 'which does not exist', remedy: 'create it' };
  const endless = { ...given, plan: { awaits: { ...awaits, fault } } };
  expect(nodesAvailable.evaluate({ ...endless, policy: policy({ maxUnavailable: TWO }) })).toEqual(
    expect.objectContaining({
      reason: expect.objectContaining({
        message:
          'a would count against maxUnavailable while it waits for Plan upgrades/b, which does not exist',
      }) as unknown,
      ends: 'Plan upgrades/b is complete: create it',
    }),
  );
});

function reporting(kubeletVersion: string): Node['status'] {
  return { nodeInfo: { kubeletVersion } };
}

test('virtual Nodes are in no percentage, unless a plan works on them or the policy counts them', () => {
  const ready = buildNode('w1');
  const virtual = (name: string): Node => ({
    metadata: { name, annotations: { 'kwok.x-k8s.io/node': 'fake' } },
  });
  const fleet = [ready, virtual('v1'), virtual('v2')];
  const namesIn = (census: ReturnType<typeof censusOf>): string[][] =>
    [census.all, census.unavailable, census.busy].map((names) => [...names]);
  expect(namesIn(censusOf(fleet, []))).toEqual([['w1'], [], []]);
  expect(namesIn(censusOf(fleet, ['v1']))).toEqual([['w1', 'v1'], ['v1'], ['v1']]);
  const stage = buildStage('worker', ['w1'], {});
  const snapshot = withParts(buildSnapshot(buildRollout([stage])), { cluster: { fleet } });
  const sizeWith = (more: Partial<RolloutPolicy>): number | undefined =>
    censusFor(snapshot, policy({ maxUnavailable: TWO, ...more }))?.all.size;
  expect(sizeWith({})).toBe(1);
  expect(sizeWith({ countsVirtual: true })).toBe(3);
});

test.each<[string, Node['status']]>([
  ['whose version is v0.0.0-master+$Format:%H$', reporting('v0.0.0-master+$Format:%H$')],
  ['whose version is fake', reporting('fake')],
  ['whose version is 1.33', reporting('1.33')],
  ['whose version is empty', reporting('')],
  ['that reports no version', { nodeInfo: {} }],
  ['that reports nothing', undefined],
])('a Node %s may be a host, so it counts', (_name, status) => {
  const odd: Node = { metadata: { name: 'w2' }, ...(status ? { status } : {}) };
  const census = censusOf([buildNode('w1'), odd], []);
  expect([[...census.all], [...census.unavailable]]).toEqual([['w1', 'w2'], ['w2']]);
});
