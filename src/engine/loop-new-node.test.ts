/**
 * Tests a Node that is deleted and registered again during its drain: nothing of the old Node counts for the new Node.
 */
import { expect, test } from 'vitest';
import { MemoryApi } from '../../test/support/builders/memory-api.ts';
import { buildNode } from '../../test/support/builders/nodes.ts';
import { buildReconciler } from '../../test/support/builders/reconcilers.ts';
import { buildRollout } from '../../test/support/builders/rollouts.ts';
import { buildStage } from '../../test/support/builders/stages.ts';
import {
  buildTablePlan,
  type TablePlan,
  tableDialect,
  withAnswer,
} from '../../test/support/builders/table-dialect.ts';
import { buildTarget } from '../../test/support/builders/targets.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { later, T0 } from '../../test/support/clock/times.ts';
import type { DrainState, Drains } from '../drain/running-drains.ts';
import { type Node, nodes } from '../kube/resources.ts';
import type { Dialect } from './contract/dialect.ts';
import type { Observation } from './model/facts.ts';

const dialect: Dialect<TablePlan> = {
  ...tableDialect,
  drainDelegation: { nodeOf: (_stage, { name }, world) => world.get(nodes, name), always: true },
};
const ASKING: Observation = {
  kind: 'working',
  step: 'Cordoning',
  attempt: later(0),
  since: later(0),
  part: 'drain',
  waitsFor: 'drain',
};

/** Stores the states of drains as the real class does, and records the calls. */
class Memory implements Drains {
  readonly done: string[] = [];
  readonly #states = new Map<string, DrainState>();

  stateOf(node: string, owner: string): DrainState | undefined {
    return this.#states.get(`${node} ${owner}`);
  }
  begin(node: string, owner: string): void {
    if (this.stateOf(node, owner)) return;
    this.done.push(`begin ${node}`);
    this.#states.set(`${node} ${owner}`, { kind: 'draining', since: T0, left: 1 });
  }
  async forget(node: string): Promise<void> {
    await Promise.resolve();
    this.#end(node);
  }
  #end(node: string): void {
    if (this.#states.size > 0) this.done.push(`forget ${node}`);
    this.#states.clear();
  }
  keep(isWanted: (node: string, owner: string) => boolean): void {
    for (const [node = '', owner = ''] of [...this.#states.keys()].map((key) => key.split(' ')))
      if (!isWanted(node, owner)) this.#end(node);
  }
  onChange(): () => void {
    return () => undefined;
  }
  async run(): Promise<void> {
    await Promise.resolve();
  }
  /** Marks all drains as drained, as if their last pod was gone. */
  finish(): void {
    for (const owner of this.#states.keys())
      this.#states.set(owner, { kind: 'drained', since: T0 });
  }
}

test('the drain of the old Node ends, the new one is signalled, and drained anew when it asks', async () => {
  const api = new MemoryApi();
  const drains = new Memory();
  const cordoned = (uid: string): Node => ({
    ...buildNode('w1', { uid }),
    spec: { unschedulable: true },
  });
  api.put(nodes, withAnswer(cordoned('old'), ASKING));
  const stage = buildStage('worker', [buildTarget('w1', 'intended', { since: later(0) })]);
  api.put(dialect.plans, { ...buildTablePlan({ workers: ['w1'] }), status: buildRollout([stage]) });
  const { look: turn } = buildReconciler(dialect, api, {
    clock: new FakeClock(T0 + 10_000),
    drains,
  });
  await turn();
  expect(drains.done).toEqual(['begin w1']);
  drains.finish();
  // The Node is deleted and created again between two turns, so the leader never observes its absence.
  api.put(nodes, buildNode('w1', { uid: 'new' }));
  await turn();
  expect(drains.done).toEqual(['begin w1', 'forget w1']);
  expect(JSON.stringify(api.read(nodes, 'w1').metadata.annotations)).toContain('sent');
  api.put(nodes, withAnswer(cordoned('new'), ASKING));
  await turn();
  expect(drains.done).toEqual(['begin w1', 'forget w1', 'begin w1']);
});
