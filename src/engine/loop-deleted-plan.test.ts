/** Proves that the work of a deleted plan is cleaned up, even if the CRD of the plans was deleted together with it. */
import { expect, test } from 'vitest';
import { buildLog } from '../../test/support/builders/logs.ts';
import { MemoryApi, refusal } from '../../test/support/builders/memory-api.ts';
import { buildNode } from '../../test/support/builders/nodes.ts';
import { buildReconciler } from '../../test/support/builders/reconcilers.ts';
import { buildRollout } from '../../test/support/builders/rollouts.ts';
import { buildStage } from '../../test/support/builders/stages.ts';
import {
  buildTablePlan,
  type TablePlan,
  tableDialect,
} from '../../test/support/builders/table-dialect.ts';
import { buildTarget } from '../../test/support/builders/targets.ts';
import { cordonOwner, withCordon } from '../drain/cordon-marks.ts';
import { createDrains, type Drains } from '../drain/running-drains.ts';
import { type Node, nodes } from '../kube/resources.ts';
import { systemClock } from '../util/clock.ts';
import type { Dialect } from './contract/dialect.ts';
import { ownerOf } from './model/rollout.ts';

const target = buildTarget('w1', 'failed');
const rollout = buildRollout([buildStage('worker', [target])], { phase: 'failed' });

const dialect: Dialect<TablePlan> = {
  ...tableDialect,
  drainDelegation: { always: true, nodeOf: (_stage, { name }, world) => world.get(nodes, name) },
  orphanedWork: {
    plans: (world, plans) =>
      world.list(nodes).some((node) => cordonOwner(node) !== undefined) && plans.length === 0
        ? [{ rollout, plan: buildTablePlan({}) }]
        : [],
  },
};

/** Builds a node that a plan cordoned before the plan was deleted. All caches are current. */
function rig(more: Parameters<typeof buildReconciler>[2] = {}) {
  const api = new MemoryApi();
  const node: Node = buildNode('w1');
  api.put(nodes, withCordon(node, ownerOf(rollout, target)));
  const { catchUp, reconcile } = buildReconciler(dialect, api, more);
  catchUp();
  return {
    api,
    reconcile,
    catchUp,
    isCordoned: () => api.read(nodes, 'w1').spec?.unschedulable === true,
  };
}

test('a node whose plan is gone is uncordoned', async () => {
  const { reconcile, isCordoned } = rig();
  await reconcile('plan');
  expect(isCordoned()).toBe(false);
});

test('a node whose plan is gone is uncordoned, also if the CRD of the plans is gone', async () => {
  const { api, reconcile, isCordoned } = rig();
  api.before('list plans', () => {
    throw refusal(404, 'NotFound');
  });
  await reconcile('plan');
  expect(isCordoned()).toBe(false);
});

test('a plan that no cache shows yet keeps its cordon', async () => {
  const { api, reconcile, isCordoned } = rig();
  api.put(dialect.plans, buildTablePlan({}));
  await reconcile('plan');
  expect(isCordoned()).toBe(true);
});

test.each([
  ['was deleted', undefined, ['plan']],
  ['was made anew', buildNode('plan'), ['plan']],
  [
    'lost its request only, which is cleaned up',
    { ...buildNode('plan'), spec: { unschedulable: true } },
    [],
  ],
])('the drain of a Node that is a plan itself, and %s', async (_what, node, ended) => {
  const found: string[] = [];
  const drains: Drains = {
    ...createDrains({
      client: new MemoryApi().client,
      clock: systemClock,
      random: Math.random,
      log: buildLog([], 'info'),
    }),
    keep: (isWanted) =>
      void found.push(...['plan', 'w1', 'w2'].filter((each) => !isWanted(each, 'owner'))),
  };
  const { api, reconcile, catchUp } = rig({ drains });
  if (node) api.put(nodes, node);
  catchUp();
  await reconcile('plan');
  expect(found).toEqual(ended);
});
