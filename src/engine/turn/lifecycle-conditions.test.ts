/** Tests which lifecycle conditions are added to a Node and removed from it, for each state of its target. */

import { expect, test } from 'vitest';
import { NONE, sent, succeeded } from '../../../test/support/builders/observations.ts';
import { type SnapshotChanges, withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, T0 } from '../../../test/support/clock/times.ts';
import type { LifecycleCondition } from '../../drain/lifecycle-conditions.ts';
import type { DrainState } from '../../drain/running-drains.ts';
import { assess } from '../assess/assess.ts';
import { answered } from '../model/asked.ts';
import { NO_CONTROLS } from '../model/controls.ts';
import type { NodeView, Observation, TargetFacts } from '../model/facts.ts';
import { because } from '../model/reasons.ts';
import type { RecordedState, Rollout } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { nodeActionsOf } from './choose-node-actions.ts';
import { commandsFor } from './commands.ts';
import { announcementsOf } from './lifecycle-conditions.ts';

const OWNER = 'table//plan/plan-uid';
const ON = { nodeConditions: true } as const;

/** Returns a Node with or without a cordon, and with these conditions. Refit set all of them for this plan. */
const nodeWith = (unschedulable: boolean, ...types: readonly LifecycleCondition[]): NodeView => ({
  name: 'n1',
  unschedulable,
  cordonOwner: unschedulable ? `plan-uid/${later(0)}/Plan` : undefined,
  taintOwner: undefined,
  lifecycle: types.map((type) => ({ type, owner: OWNER })),
});

const working = (waitsFor?: 'drain' | 'uncordon'): Observation => ({
  kind: 'working',
  step: 'x',
  attempt: later(0),
  since: later(0),
  waitsFor,
});

interface Case {
  readonly state?: RecordedState;
  readonly node?: NodeView;
  readonly observation?: Observation;
  readonly drain?: DrainState['kind'];
  readonly policy?: Partial<RolloutPolicy>;
  readonly facts?: Partial<TargetFacts>;
}

function assessmentOf({ state = 'intended', policy = {}, facts = {}, ...at }: Case) {
  const { node = nodeWith(false), observation = NONE, drain } = at;
  const stage = buildStage('worker', [buildTarget('w1', state), buildTarget('w2', 'done')]);
  const states = {
    draining: { kind: 'draining', since: T0, left: 2 },
    drained: { kind: 'drained', since: T0 },
    failed: { kind: 'failed', since: T0, reason: 'no' },
  } as const;
  const known = drain && states[drain];
  const w1 = { drainDelegation: answered(true), node, observation, drain: known, ...facts };
  const snapshot = withParts(buildSnapshot(buildRollout([stage]), { w1 }), {
    plan: { markOwner: OWNER },
  });
  return assess(snapshot, buildPolicy({ ...ON, ...policy }), T0);
}

/** Returns the changes of the conditions, for example `+Drained -DrainInProgress`. */
function changeOf(given: Case, snapshot = assessmentOf(given).snapshot): string {
  const { policy, now } = assessmentOf(given);
  return announcementsOf(assess(snapshot, policy, now))
    .flatMap(({ change: { set, clear } }) => [
      ...set.map((type) => `+${type}`),
      ...clear.map((type) => `-${type}`),
    ])
    .join(' ');
}

test.each<[string, Case, string]>([
  ['a pending node', { state: 'pending' }, '+MaintenancePlanned'],
  [
    'a pending node that is announced',
    { state: 'pending', node: nodeWith(false, 'MaintenancePlanned') },
    '',
  ],
  [
    'a pending node that somebody holds',
    {
      state: 'pending',
      node: nodeWith(false, 'MaintenancePlanned'),
      facts: { hold: { by: 'ann', reason: 'no' } },
    },
    '-MaintenancePlanned',
  ],
  [
    'a node that is about to get its signal',
    { node: nodeWith(false, 'MaintenancePlanned') },
    '+MaintenanceInProgress -MaintenancePlanned',
  ],
  ['a node at work', { observation: sent() }, '+MaintenanceInProgress'],
  [
    'a node that waits for its cordon',
    { observation: working('drain'), node: nodeWith(false, 'MaintenanceInProgress') },
    '',
  ],
  [
    'a cordoned node whose drain has not begun',
    { observation: working('drain'), node: nodeWith(true, 'MaintenanceInProgress') },
    '+DrainInProgress',
  ],
  [
    'a node that is drained now',
    {
      observation: working('drain'),
      drain: 'drained',
      node: nodeWith(true, 'MaintenanceInProgress', 'DrainInProgress'),
    },
    '+Drained -DrainInProgress',
  ],
  [
    'a node that goes on after its drain',
    { observation: working(), node: nodeWith(true, 'MaintenanceInProgress', 'Drained') },
    '',
  ],
  [
    'a node that goes on although its drain missed its deadline',
    { observation: working(), node: nodeWith(true, 'MaintenanceInProgress', 'DrainInProgress') },
    '-DrainInProgress',
  ],
  [
    'a node that was uncordoned',
    {
      observation: working('uncordon'),
      node: nodeWith(false, 'MaintenanceInProgress', 'Drained'),
    },
    '-Drained',
  ],
  [
    'a drain that was refused',
    {
      observation: working('drain'),
      drain: 'failed',
      node: nodeWith(true, 'MaintenanceInProgress', 'DrainInProgress'),
    },
    '-DrainInProgress',
  ],
  [
    'a drain that the pause of the policy stopped',
    {
      observation: working('drain'),
      node: nodeWith(true, 'MaintenanceInProgress', 'DrainInProgress'),
      policy: { heldBy: 'UpgradePolicy night' },
    },
    '-DrainInProgress',
  ],
  [
    'a policy that only cordons',
    {
      observation: working('drain'),
      node: nodeWith(true, 'MaintenanceInProgress'),
      policy: { drain: { ...buildPolicy().drain, cordonOnly: true } },
    },
    '',
  ],
  [
    'a node that has reported success',
    { observation: succeeded(), node: nodeWith(false, 'MaintenanceInProgress') },
    '',
  ],
  [
    'a node that is done',
    { state: 'done', node: nodeWith(false, 'MaintenanceInProgress', 'Drained') },
    '-MaintenanceInProgress -Drained',
  ],
  [
    'a failed node that is still at work',
    { state: 'failed', observation: working(), node: nodeWith(true, 'MaintenanceInProgress') },
    '',
  ],
  [
    'a failed node',
    { state: 'failed', node: nodeWith(true, 'MaintenanceInProgress', 'Drained') },
    '-MaintenanceInProgress -Drained',
  ],
  [
    'a condition of somebody else',
    {
      observation: sent(),
      node: {
        ...nodeWith(false),
        lifecycle: [
          { type: 'MaintenanceInProgress', owner: undefined },
          { type: 'Drained', owner: 'table//other/uid' },
        ],
      },
    },
    '',
  ],
  [
    'a Node whose status the API server refuses to change',
    {
      observation: sent(),
      facts: {
        announcementRefusal: { reason: because('TargetRefused', 'no'), recheckMs: 1000 },
      },
    },
    '',
  ],
  ['a policy without conditions', { observation: sent(), policy: { nodeConditions: false } }, ''],
])('the lifecycle conditions of the Node: %s', (_title, given, expected) => {
  expect(changeOf(given)).toBe(expected);
});

test('a policy that was switched off clears what is left', () => {
  const { snapshot, now } = assessmentOf({
    observation: sent(),
    node: nodeWith(false, 'MaintenanceInProgress'),
  });
  const message = `set by Refit for ${OWNER}`;
  const condition = {
    type: 'MaintenanceInProgress',
    status: 'True' as const,
    reason: 'RefitUpgrade',
    message,
  };
  const fleet = [{ metadata: { name: 'n1' }, status: { conditions: [condition] } }];
  const assessment = assess(withParts(snapshot, { cluster: { fleet } }), buildPolicy(), now);
  expect(announcementsOf(assessment).map(({ change }) => change)).toEqual([
    { set: [], clear: ['MaintenanceInProgress'] },
  ]);
});

test('the conditions are written before the signal, the drain and the acknowledgement', () => {
  const kindsOf = (given: Case) => commandsFor(assessmentOf(given)).map(({ kind }) => kind);
  expect(kindsOf({})).toEqual(['node-action']);
  expect(kindsOf({ node: nodeWith(false, 'MaintenanceInProgress') })).toEqual(['signal']);
  const actionsOf = (given: Case) => nodeActionsOf(assessmentOf(given)).map(({ kind }) => kind);
  const observation = working('drain');
  const node = nodeWith(true, 'MaintenanceInProgress');
  const shown = nodeWith(true, 'MaintenanceInProgress', 'DrainInProgress');
  const drained = nodeWith(true, 'MaintenanceInProgress', 'Drained');
  expect(actionsOf({ observation, node })).toEqual(['announce']);
  expect(actionsOf({ observation, node: shown })).toEqual(['drain']);
  expect(actionsOf({ observation, node: shown, drain: 'drained' })).toEqual(['announce']);
  expect(actionsOf({ observation, node: drained, drain: 'drained' })).toEqual(['acknowledge']);
});

test('of a large plan, 20 Nodes are announced in one turn, after those at work', () => {
  const names = Array.from({ length: 30 }, (_, index) => `w${index}`);
  const targets = names.map((name, index) =>
    buildTarget(name, index === 29 ? 'intended' : 'pending'),
  );
  const facts = Object.fromEntries(
    names.map((name) => [name, { node: { ...nodeWith(false), name } }]),
  );
  const rollout = buildRollout([buildStage('worker', targets)]);
  const snapshot = withParts(buildSnapshot(rollout, facts), { plan: { markOwner: OWNER } });
  const announced = announcementsOf(assess(snapshot, buildPolicy(ON), T0));
  expect(announced.map(({ node }) => node)).toEqual(['w29', ...names.slice(0, 20)]);
});

const ABORTED = { plan: { controls: { ...NO_CONTROLS, abort: 'ann' } } };

test.each<[string, Case, SnapshotChanges, string]>([
  ['a pending node', { state: 'pending' }, {}, ''],
  ['an intent that is given up', {}, {}, ''],
  ['a node that is told to stop', { observation: sent() }, {}, '+MaintenanceInProgress'],
  ['a node that has ended', { observation: succeeded() }, {}, ''],
  ['an intent without a signal, after a pause', { policy: { paused: true } }, {}, ''],
])('an aborted plan announces only work in progress: %s', (_title, given, parts, expected) => {
  expect(changeOf(given, withParts(assessmentOf(given).snapshot, ABORTED, parts))).toBe(expected);
});

test('an intent that waits for its gates is announced as planned', () => {
  expect(changeOf({ policy: { paused: true } })).toBe('+MaintenancePlanned');
});

test('a skipped node at work keeps its condition, and loses it afterwards', () => {
  const node = nodeWith(false, 'MaintenanceInProgress');
  expect(changeOf({ state: 'skipped', node, observation: working() })).toBe('');
  expect(changeOf({ state: 'skipped', node })).toBe('-MaintenanceInProgress');
});

test.each<[string, Partial<Rollout>]>([
  ['is new', { phase: 'new' }],
  ['has ended', { phase: 'done' }],
  ['has a record that cannot be read', { unread: because('CannotDecide', 'a shard is missing') }],
])('a plan that %s announces nothing', (_title, more) => {
  const { snapshot } = assessmentOf({ observation: sent() });
  const rollout = { ...snapshot.rollout, ...more };
  expect(changeOf({}, { ...snapshot, rollout })).toBe('');
});

test('a plan without an owner announces nothing', () => {
  const { snapshot } = assessmentOf({ observation: sent() });
  expect(changeOf({}, withParts(snapshot, { plan: { markOwner: undefined } }))).toBe('');
});

test('a node of two stages is in progress if one of them works on it, and its refusal counts for both', () => {
  const node = nodeWith(false, 'MaintenanceInProgress');
  const announcedOf = (facts: Partial<TargetFacts>): number => {
    const stages = [
      buildStage('worker', [buildTarget('w1', 'intended')]),
      buildStage('worker', [buildTarget('w1', 'pending')], { command: 1 }),
    ];
    const [first, second] = stages.map(({ targets }) => targets[0]?.key ?? '');
    const snapshot = buildSnapshot(buildRollout(stages), {
      [first ?? '']: { observation: sent(), node, ...facts },
      [second ?? '']: { node },
    });
    const owned = withParts(snapshot, { plan: { markOwner: OWNER } });
    return announcementsOf(assess(owned, buildPolicy(ON), T0)).length;
  };
  expect(announcedOf({})).toBe(0);
  const announcementRefusal = { reason: because('TargetRefused', 'no'), recheckMs: 1000 };
  expect(announcedOf({ node: nodeWith(false), announcementRefusal })).toBe(0);
});
