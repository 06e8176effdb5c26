/** Two leaders in different processes, whose caches lag, share one limit: never more nodes at work, and both get done. */
import { expect, test } from 'vitest';
import { MemoryApi } from '../../../test/builders/memory-api.ts';
import { buildNode } from '../../../test/builders/nodes.ts';
import { succeeded } from '../../../test/builders/observations.ts';
import { buildReconciler } from '../../../test/builders/reconcilers.ts';
import { buildPolicy } from '../../../test/builders/rollout-policies.ts';
import { buildTablePlan, type TablePlan, tableDialect, withAnswer } from '../../../test/builders/table-dialect.ts';
import { seededRandom } from '../../../test/faults/random.ts';
import { type Node, nodes } from '../../kube/resources.ts';
import { claimOn } from '../../signal/at-work.ts';
import type { Dialect } from '../dialect.ts';

const OWN = { patient: ['n1', 'n2'], yielding: ['n3', 'n4'] };
const NAMES = Object.values(OWN).flat();

function dialectOf(name: keyof typeof OWN, more: Partial<Dialect<TablePlan>>): Dialect<TablePlan> {
  return {
    ...tableDialect,
    name,
    plans: { ...tableDialect.plans, plural: `plansof${name}` },
    claims: (_node, { maxUnavailable }) => maxUnavailable !== undefined,
    drainDelegation: { always: true, nodeOf: (_stage, target, world) => world.get(nodes, target.name) },
    ...more,
  };
}

const DIALECTS = { patient: dialectOf('patient', {}), yielding: dialectOf('yielding', { yieldsClaims: true }) };
const policyFor = () => buildPolicy({ maxUnavailable: { nodes: 1 } });

function scene() {
  const api = new MemoryApi();
  for (const name of NAMES) api.put(nodes, buildNode(name));
  const leaders = (['patient', 'yielding'] as const).map((name) => {
    const dialect = DIALECTS[name];
    const { metadata, ...plan } = buildTablePlan({ workers: OWN[name] });
    api.put(dialect.plans, { ...plan, metadata: { ...metadata, uid: `${name}-uid` } });
    const { reconcile, catchUp } = buildReconciler(dialect, api, { policyFor });
    return { dialect, reconcile, catchUp, running: false };
  });
  const read = (): Node[] => NAMES.map((name) => api.read(nodes, name));
  const atWork = (): Node[] => read().filter(({ metadata }) => JSON.stringify(metadata).includes('sent'));
  const isDone = (): boolean =>
    leaders.every(({ dialect }) => api.read<TablePlan>(dialect.plans, 'plan').status?.phase === 'done');
  return { api, leaders, read, atWork, isDone };
}

test.each(Array.from({ length: 200 }, (_, seed) => seed))('whatever happens in between: %i', async (seed) => {
  const random = seededRandom(seed);
  const { api, leaders, read, atWork, isDone } = scene();
  for (let step = 0; step < 5_000 && !isDone(); step++) {
    const leader = leaders[Math.floor(random() * leaders.length)];
    const what = random();
    if (leader && what < 0.3) leader.catchUp();
    else if (leader && what < 0.6 && !leader.running) {
      leader.running = true;
      void leader.reconcile('plan').finally(() => (leader.running = false));
    } else if (what > 0.95) {
      const [node] = atWork();
      if (node) api.put(nodes, withAnswer(node, succeeded()));
    }
    for (let turns = random() * 10; turns > 0; turns--) await Promise.resolve();
    expect(atWork().length).toBeLessThan(2);
  }
  expect(isDone()).toBe(true);
  expect(read().map(claimOn)).toEqual(NAMES.map(() => undefined));
});
