/**
 * Tests locks that are shared with other tools: Refit signals a node only while it holds the locks, and it holds them
 * as long as nodes are in progress.
 */
import { expect, onTestFinished, test } from 'vitest';
import { MemoryApi, refusal } from '../../../test/support/builders/memory-api.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { succeeded } from '../../../test/support/builders/observations.ts';
import { buildReconciler } from '../../../test/support/builders/reconcilers.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import {
  buildTablePlan,
  claimingDialect,
  type TablePlan,
  withAnswer,
} from '../../../test/support/builders/table-dialect.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import { createLockKeeper } from '../../coordination/lock-keeper.ts';
import { daemonSets, type Lease, leases, type Node, nodes } from '../../kube/resources.ts';
import type { Dialect } from '../contract/dialect.ts';
import type { OrphanedPlan } from '../contract/features.ts';
import type { Observation } from '../model/facts.ts';

const LOOK_MS = 10_000;
const KURED = 'weave.works/kured-node-lock';
const OURS = 'refit/table';
/** If the plan is deleted, this dialect finds it by the Nodes that are still in progress, as real dialects do. */
const dialect: Dialect<TablePlan> = {
  ...claimingDialect('table'),
  orphanedWork: {
    plans: (world, plans) => (plans.length > 0 ? [] : world.list(nodes).map(orphanOn)),
  },
};

function orphanOn({ metadata: { name } }: Node): OrphanedPlan<TablePlan> {
  const stage = buildStage('worker', [buildTarget(name, 'failed')]);
  const plan = { ...buildTablePlan({}), metadata: { name: 'plan', uid: 'plan-uid' } };
  return { rollout: buildRollout([stage], { phase: 'failed' }), plan };
}

function scene(tool: 'Kured' | 'DisruptionLease', former?: MemoryApi) {
  const api = former ?? new MemoryApi();
  const clock = new FakeClock(T0);
  if (!former) {
    api.put(nodes, buildNode('n1'));
    api.put(dialect.plans, buildTablePlan({ workers: ['n1'] }));
  }
  const locks = createLockKeeper({ client: api.client, clock, holder: OURS });
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  void locks.run(stop.signal);
  const policy = buildPolicy({ coordinate: [tool] });
  const { look } = buildReconciler(dialect, api, { locks, clock, policyFor: () => policy });
  const answerOf = (): string | undefined =>
    api.read(nodes, 'n1').metadata.annotations?.['example.com/answer'];
  const isAtWork = (): boolean => answerOf()?.includes('sent') === true;
  const answer = (): void => {
    const { attempt } = JSON.parse(answerOf() ?? '') as { attempt: string };
    api.change(nodes, 'n1', (node) => withAnswer(node, { ...succeeded(), attempt } as Observation));
  };
  const stateOfTarget = (): string | undefined => {
    const { status } = api.read<TablePlan>(dialect.plans, 'plan');
    return status?.stages.flatMap(({ targets }) => targets)[0]?.state;
  };
  const holder = (): string | undefined =>
    api.read<Lease>(leases, 'disruption').spec?.holderIdentity;
  /** Advances the clock, so that the lock keeper reads the locks, and then runs a turn of the leader. */
  const turn = async (ms = 0): Promise<void> => {
    await clock.advance(ms);
    await look();
  };
  const crash = (): void => stop.abort();
  return { api, look, turn, crash, isAtWork, answer, stateOfTarget, holder };
}

test('no node starts while Kured holds its lock, and Refit takes it then', async () => {
  const { api, look, turn, isAtWork, stateOfTarget } = scene('Kured');
  const annotations = { [KURED]: '{"nodeID":"w9"}' };
  api.put(daemonSets, { metadata: { name: 'kured', namespace: 'kube-system', annotations } });
  await look();
  await turn();
  expect([isAtWork(), stateOfTarget()]).toEqual([false, 'pending']);
  api.put(daemonSets, { metadata: { name: 'kured', namespace: 'kube-system' } });
  await turn(LOOK_MS);
  await turn();
  expect(isAtWork()).toBe(true);
  expect(api.read(daemonSets, 'kured').metadata.annotations?.[KURED]).toContain(OURS);
});

test('an intended node is not signalled before the Lease is taken', async () => {
  const { api, look, turn, isAtWork, stateOfTarget, holder } = scene('DisruptionLease');
  const refuse = (): never => {
    throw refusal(403, 'Forbidden');
  };
  api.before('create leases/disruption', refuse);
  await look();
  await turn();
  await turn();
  expect([stateOfTarget(), isAtWork()]).toEqual(['intended', false]);
  api.before('create leases/disruption', refuse);
  await turn(LOOK_MS);
  expect([stateOfTarget(), isAtWork()]).toEqual(['intended', false]);
  await turn(LOOK_MS);
  expect([stateOfTarget(), isAtWork(), holder()]).toEqual(['intended', true, OURS]);
});

test('the Lease goes back after the last node', async () => {
  const { look, turn, answer, holder } = scene('DisruptionLease');
  await look();
  await turn();
  await turn();
  answer();
  await turn();
  await turn(LOOK_MS);
  expect(holder()).toBe('');
});

test('a plan that is deleted keeps the Lease until its node has ended its work', async () => {
  const { api, look, turn, isAtWork, answer, holder } = scene('DisruptionLease');
  await look();
  await turn();
  await turn();
  api.remove(dialect.plans, 'plan');
  for (let looks = 0; looks < 60; looks++) await turn(LOOK_MS);
  expect([isAtWork(), holder()]).toEqual([true, OURS]);
  answer();
  await turn();
  await turn(LOOK_MS);
  expect(holder()).toBe('');
});

test('the next leader keeps the Lease for the node of a plan that was deleted meanwhile', async () => {
  const first = scene('DisruptionLease');
  await first.look();
  await first.turn();
  await first.turn();
  first.crash();
  first.api.remove(dialect.plans, 'plan');
  const next = scene('DisruptionLease', first.api);
  await next.look();
  for (let looks = 0; looks < 60; looks++) await next.turn(LOOK_MS);
  expect([next.isAtWork(), next.holder()]).toEqual([true, OURS]);
  next.answer();
  await next.turn();
  await next.turn(LOOK_MS);
  expect(next.holder()).toBe('');
});
