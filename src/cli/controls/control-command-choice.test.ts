/** Shows which plan a control applies to, and that it never guesses if there are several candidates. */
import { expect, test } from 'vitest';
import { buildCattlePlan } from '../../../test/support/builders/cattle-plans.ts';
import { buildMachineUpdate } from '../../../test/support/builders/machine-updates.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan } from '../../../test/support/builders/plans.ts';
import { buildViewParts, statusOf } from '../../../test/support/builders/views.ts';
import { buildWorldOf } from '../../../test/support/builders/worlds-of-kinds.ts';
import { MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { CattlePlan } from '../../api/cattle/plan.ts';
import { autopilot } from '../../dialects/autopilot/plan/autopilot-dialect.ts';
import { capi } from '../../dialects/capi/plan/capi-dialect.ts';
import { withRequest } from '../../dialects/capi/plan/machine-update.ts';
import { cattleView } from '../../dialects/cattle/plan/cattle-dialect.ts';
import { latestHash } from '../../dialects/cattle/plan/latest.ts';
import type { Dialect } from '../../engine/contract/dialect.ts';
import { jobs, type KubeObject, nodes, pods } from '../../kube/resources.ts';
import { controlNodes } from '../../signal/names.ts';
import { RefitError } from '../../util/errors.ts';
import { type Inspection, inspect } from '../status/observe.ts';
import { choosePlan } from './control-command.ts';
import { retry } from './retry.ts';

const machine = withRequest(buildNode('n1'), buildMachineUpdate());
const PLANS: Readonly<Record<string, readonly [Dialect, KubeObject]>> = {
  open: [autopilot, buildPlan({}, statusOf('SchedulableWait', [], []))],
  over: [autopilot, buildPlan({}, statusOf('Warning', [], []))],
  image: [cattleView, buildCattlePlan('image')],
  machine: [capi, machine],
};

async function look(name: string): Promise<Inspection> {
  const [dialect, plan] = PLANS[name] ?? [];
  if (!dialect || !plan) throw new Error(`no plan ${name}`);
  return await inspectionOf(dialect, plan);
}

async function inspectionOf(dialect: Dialect, plan: KubeObject): Promise<Inspection> {
  const node = buildNode('n1', { labels: { 'kubernetes.io/hostname': 'n1' } });
  const world = buildWorldOf([nodes, [node]], [controlNodes, []], [jobs, []], [pods, []]);
  return await inspect({ dialect, world }, plan, buildViewParts(), T0 + MINUTE);
}

const RESOLVED = {
  latestVersion: 'v1.2.3',
  latestHash: latestHash(buildCattlePlan('p'), 'v1.2.3', []),
};

async function choose(plans: readonly string[], named?: string): Promise<string> {
  const found = await Promise.all(plans.map(look));
  try {
    return plans[found.indexOf(choosePlan(found, named))] ?? 'none';
  } catch (error) {
    if (error instanceof RefitError) return `${error.code}: ${error.message}`;
    throw error;
  }
}

test('a retry without a name is for the plan in which the node failed', async () => {
  const failed = {
    conditions: [{ type: 'RefitFailedNodes', status: 'True', message: 'n1 at x; generation 0' }],
  };
  const plan: CattlePlan = { ...buildCattlePlan('broken'), status: { ...RESOLVED, ...failed } };
  const broken = await inspectionOf(cattleView, plan);
  const other = await inspectionOf(cattleView, buildCattlePlan('other'));
  expect(choosePlan([other, broken, await look('open')], undefined, retry('n1'))).toBe(broken);
  expect(() => choosePlan([other, broken], undefined, retry('n2'))).toThrow(
    'several plans are possible',
  );
  expect(() => choosePlan([other, broken], undefined)).toThrow('several plans are possible');
});

test('a retry of a node that has not failed is for the plan to which the node belongs', async () => {
  const ofNode = (name: string, spec: object): CattlePlan => ({
    ...buildCattlePlan(name, spec),
    status: RESOLVED,
  });
  const own = await inspectionOf(cattleView, ofNode('own', {}));
  const elsewhere = { nodeSelector: { matchLabels: { pool: 'other' } } };
  const other = await inspectionOf(cattleView, ofNode('other', elsewhere));
  expect(choosePlan([other, own], undefined, retry('n1'))).toBe(own);
});

test('a retry of the name of a plan is for this plan, so that its answer is about it', async () => {
  const plans = [await look('open'), await look('image')];
  expect(choosePlan(plans, undefined, retry('image'))).toBe(plans[1]);
});

test.each<[string, string[], string | undefined, string]>([
  ['the only one', ['open'], undefined, 'open'],
  ['the only one that is not over', ['over', 'image'], undefined, 'image'],
  ['the last one if all are over', ['over'], undefined, 'over'],
  ['none at all', [], undefined, 'REFIT_CONTROL: there is no plan'],
  [
    'none of several that are not over',
    ['open', 'image', 'machine'],
    undefined,
    'REFIT_USAGE: several plans are possible: autopilot/autopilot, capi/ns/m, cattle/system-upgrade/image',
  ],
  ['by kind and name', ['open', 'image'], 'plan/image', 'image'],
  ['the case of a kind does not matter', ['open', 'image'], 'Plan/autopilot', 'open'],
  ['by name', ['open', 'image'], 'autopilot', 'open'],
  ['by dialect', ['open', 'image'], 'cattle/image', 'image'],
  [
    'by dialect and namespace, as policies name it',
    ['open', 'image'],
    'cattle/system-upgrade/image',
    'image',
  ],
  ['a Machine, as people see it', ['open', 'machine'], 'machine/ns/m', 'machine'],
  ['a Machine, by its Node', ['open', 'machine'], 'node/n1', 'machine'],
  [
    'one that is not there',
    ['open', 'image'],
    'plan/other',
    'REFIT_CONTROL: there is no plan plan/other; there is autopilot/autopilot, cattle/system-upgrade/image',
  ],
])(
  'the plan that a command without a full name chooses: %s',
  async (_name, plans, named, chosen) => {
    expect(await choose(plans, named)).toBe(chosen);
  },
);
