/** Locks that are shared with other tools: no node is signalled before Refit holds them, and they are held while nodes are at work. */
import { expect, onTestFinished, test } from 'vitest';
import { MemoryApi, refusal } from '../../../test/support/builders/memory-api.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { succeeded } from '../../../test/support/builders/observations.ts';
import { buildReconciler } from '../../../test/support/builders/reconcilers.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import {
  buildTablePlan,
  claimingDialect,
  type TablePlan,
  withAnswer,
} from '../../../test/support/builders/table-dialect.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import { createLockKeeper } from '../../coordination/lock-keeper.ts';
import { daemonSets, type Lease, leases, nodes } from '../../kube/resources.ts';
import type { Observation } from '../model/decision.ts';

const LOOK_MS = 10_000;
const KURED = 'weave.works/kured-node-lock';
const OURS = 'refit/table';
const dialect = claimingDialect('table');

function scene(tool: 'Kured' | 'DisruptionLease') {
  const api = new MemoryApi();
  const clock = new FakeClock(T0);
  api.put(nodes, buildNode('n1'));
  api.put(dialect.plans, buildTablePlan({ workers: ['n1'] }));
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
  /** Lets the keeper look, and the leader after it. */
  const turn = async (ms = 0): Promise<void> => {
    await clock.advance(ms);
    await look();
  };
  return { api, clock, look, turn, isAtWork, answer, stateOfTarget, holder };
}

test('no node starts while Kured holds its lock, and Refit takes it then', async () => {
  const { api, look, turn, isAtWork, stateOfTarget } = scene('Kured');
  const annotations = { [KURED]: '{"nodeID":"w9"}' };
  api.put(daemonSets, { metadata: { name: 'kured', annotations } });
  await look();
  await turn();
  expect([isAtWork(), stateOfTarget()]).toEqual([false, 'pending']);
  api.put(daemonSets, { metadata: { name: 'kured' } });
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
