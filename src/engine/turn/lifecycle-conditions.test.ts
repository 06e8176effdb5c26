/** Tests which lifecycle conditions are added to a Node and removed from it, for each state of its target. */

import { expect, test } from 'vitest';
import { NONE, sent, succeeded } from '../../../test/support/builders/observations.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
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
import type { NodeView, Observation, TargetFacts } from '../model/facts.ts';
import { because } from '../model/reasons.ts';
import type { RecordedState } from '../model/rollout.ts';
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
function changeOf(given: Case): string {
  return announcementsOf(assessmentOf(given))
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
