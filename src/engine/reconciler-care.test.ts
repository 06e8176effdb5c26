/** Owns the proof of the loop around drains: who is looked at ahead of them, and that one is begun whatever the cache shows. */
import { expect, test } from 'vitest';
import { buildPolicy } from '../../test/builders/campaign-policies.ts';
import { MemoryApi } from '../../test/builders/memory-api.ts';
import { buildNode } from '../../test/builders/nodes.ts';
import { buildTablePlan, type TablePlan, tableDialect } from '../../test/builders/table-dialect.ts';
import { T0 } from '../../test/builders/times.ts';
import { FakeClock } from '../../test/faults/fake-clock.ts';
import type { Outlook } from '../drain/outlook.ts';
import { nodes } from '../kube/resources.ts';
import type { Dialect } from './dialect.ts';
import { OwnWrites } from './own-writes.ts';
import { createReconciler, type Outcome } from './reconciler.ts';
import { viewsOf } from './world.ts';

const dialect: Dialect<TablePlan> = {
  ...tableDialect,
  care: { nodeOf: (_stage, { name }, world) => world.get(nodes, name), always: true },
};

const FREE: Outlook = { evictable: 1, obstacles: [], refused: [] };
const HELD: Outlook = { ...FREE, obstacles: [{ budget: 'default/web', pods: ['default/web-0'], reason: 'never' }] };

function apiWith(workers: readonly string[]): MemoryApi {
  const api = new MemoryApi();
  for (const name of workers) api.put(nodes, buildNode(name));
  api.put(dialect.plans, buildTablePlan({ workers }));
  return api;
}

/** One look of a new leader; `free` are the nodes whose drain nothing stands against. */
async function look(api: MemoryApi, free: readonly string[]): Promise<{ outcome: Outcome; looks: number }> {
  let looks = 0;
  const plans = api.view(dialect.plans);
  const watched = dialect.watched.map(({ resource }) => [resource, api.view(resource)] as const);
  for (const view of [plans, ...watched.map(([, each]) => each)]) view.catchUp();
  const reconcile = createReconciler<TablePlan>({
    dialect,
    client: api.client,
    ownWrites: new OwnWrites(),
    plans,
    views: viewsOf(watched),
    policyFor: () => buildPolicy(),
    clock: new FakeClock(T0),
    inquirer: {
      askControlPlane: async () => await Promise.resolve([]),
      lookAhead: async (node) => {
        looks++;
        return await Promise.resolve(free.includes(node) ? FREE : HELD);
      },
    },
  });
  return { outcome: await reconcile('plan'), looks };
}

const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `w${index}`);

function intendedIn(api: MemoryApi): string[] {
  const stages = api.read(dialect.plans, 'plan').status?.stages ?? [];
  return stages.flatMap(({ targets }) => targets.filter(({ state }) => state === 'intended').map(({ name }) => name));
}

test('nodes whose drain could never end do not hold up those behind them, however many there are', async () => {
  const api = apiWith(names(40));
  await look(api, ['w39']);
  expect(intendedIn(api)).toEqual(['w39']);
});

test('where none can be drained, some are looked at, and again only after a while', async () => {
  const api = apiWith(names(500));
  const { outcome, looks } = await look(api, []);
  expect(outcome).toEqual({ requeueAfterMs: 5000 });
  expect(looks).toBeLessThan(200);
  expect(api.read(dialect.plans, 'plan').status?.blocked).toBe(true);
});

test('of those that can be drained no more are looked at than may start', async () => {
  expect((await look(apiWith(names(40)), names(40))).looks).toBe(1);
});
