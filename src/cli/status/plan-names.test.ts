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
import { isKept, isNamed, type PlanFilter, refOf } from './plan-names.ts';

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
])('%j', (filter, wanted) => {
  expect(ALL.filter((each) => isKept(each, filter)).map(refOf)).toEqual(wanted);
});

test.each([
  'server',
  'Plan/server',
  'plan/server',
  'cattle/server',
  'system-upgrade/server',
  'cattle/system-upgrade/server',
])('%s names it', (name) => {
  expect(ALL.filter((each) => isNamed(each, name)).map(refOf)).toEqual([
    'cattle/system-upgrade/server',
  ]);
});

test.each(['m1', 'fleet/m1', 'capi/fleet/m1', 'machine/m1', 'machine/fleet/m1', 'w1'])(
  'a Machine is named by %s, as in refit history',
  (name) => {
    const source = { ...sourceOf(capi.plans, buildNode('w1')), kind: 'Machine', name: 'fleet/m1' };
    const machine = {
      dialect: capi,
      plan: buildNode('w1'),
      snapshot: { rollout: { source } as Rollout },
    };
    expect(isNamed(machine, name)).toBe(true);
  },
);
