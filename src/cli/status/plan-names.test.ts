/** Shows which plans a filter keeps, and which names of a plan the commands accept. */
import { expect, test } from 'vitest';
import { buildCattlePlan } from '../../../test/support/builders/cattle-plans.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan } from '../../../test/support/builders/plans.ts';
import { autopilot } from '../../dialects/autopilot/plan/autopilot-dialect.ts';
import { capi } from '../../dialects/capi/plan/capi-dialect.ts';
import { cattleView } from '../../dialects/cattle/plan/cattle-dialect.ts';
import type { Dialect } from '../../engine/contract/dialect.ts';
import { type Rollout, sourceOf } from '../../engine/model/rollout.ts';
import type { KubeObject } from '../../kube/resources.ts';
import { isKept, isNamed, noPlan, type PlanFilter, refOf } from './plan-names.ts';

const named = (dialect: Dialect, plan: KubeObject) => ({
  dialect,
  plan,
  snapshot: { rollout: { source: sourceOf(dialect.plans, plan) } as Rollout },
});
const ALL = [
  named(autopilot, buildPlan()),
  named(cattleView, buildCattlePlan('server')),
  named(cattleView, buildCattlePlan('agent')),
];

test.each<[PlanFilter, string[]]>([
  [{}, ['autopilot/autopilot', 'cattle/system-upgrade/server', 'cattle/system-upgrade/agent']],
  [{ dialect: 'cattle' }, ['cattle/system-upgrade/server', 'cattle/system-upgrade/agent']],
  [
    { namespace: 'system-upgrade' },
    ['cattle/system-upgrade/server', 'cattle/system-upgrade/agent'],
  ],
  [{ namespace: 'other' }, []],
  [{ plan: 'server' }, ['cattle/system-upgrade/server']],
  [{ plan: 'server', dialect: 'autopilot' }, []],
  [{ plan: 'plan/autopilot' }, ['autopilot/autopilot']],
])('the plans that the filter %j keeps', (filter, wanted) => {
  expect(ALL.filter((each) => isKept(each, filter)).map(refOf)).toEqual(wanted);
});

test.each([
  'server',
  'Plan/server',
  'plan/server',
  'cattle/server',
  'system-upgrade/server',
  'cattle/system-upgrade/server',
])('the name %s means the Plan server of Rancher', (name) => {
  expect(ALL.filter((each) => isNamed(each, name)).map(refOf)).toEqual([
    'cattle/system-upgrade/server',
  ]);
});

const MACHINE = {
  dialect: capi,
  plan: buildNode('w1'),
  snapshot: {
    rollout: {
      source: { ...sourceOf(capi.plans, buildNode('w1')), kind: 'Machine', name: 'fleet/m1' },
    } as Rollout,
  },
};

test('a Machine is in its own namespace, although a Node has none', () => {
  expect(isKept(MACHINE, { namespace: 'fleet' })).toBe(true);
  expect(isKept(MACHINE, { namespace: 'other' })).toBe(false);
});

test('the plans that exist have the names that the output for people shows', () => {
  expect(noPlan([MACHINE, ...ALL], { plan: 'nosuch' })).toBe(
    'there is no plan nosuch; there is autopilot/autopilot, capi/fleet/m1, cattle/system-upgrade/agent, cattle/system-upgrade/server',
  );
  expect(noPlan([{ dialect: capi, plan: buildNode('w1') }])).toBe(
    'there is no plan; there is capi/w1',
  );
});

test.each(['m1', 'fleet/m1', 'capi/fleet/m1', 'machine/m1', 'machine/fleet/m1', 'w1'])(
  'a Machine is named by %s, as in refit history',
  (name) => {
    expect(isNamed(MACHINE, name)).toBe(true);
  },
);
