/**
 * Tests lifecycle conditions on Nodes: they are True while a node is in progress and False at the end, wherever the
 * leader crashes.
 */
import { expect, test } from 'vitest';
import { MemoryApi, refusal } from '../../../test/support/builders/memory-api.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { failed, succeeded } from '../../../test/support/builders/observations.ts';
import { buildReconciler } from '../../../test/support/builders/reconcilers.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import {
  buildTablePlan,
  claimingDialect,
  type TablePlan,
  withAnswer,
} from '../../../test/support/builders/table-dialect.ts';
import { nodes } from '../../kube/resources.ts';
import type { Observation } from '../model/facts.ts';

const NAMES = ['n1', 'n2'];
const MISSING = 'User "refit" cannot patch resource "nodes/status" at the cluster scope';
const dialect = claimingDialect('table');

class Crash extends Error {}

function scene() {
  const api = new MemoryApi();
  for (const name of NAMES) api.put(nodes, buildNode(name));
  api.put(dialect.plans, buildTablePlan({ workers: NAMES }));
  const newLeader = () =>
    buildReconciler(dialect, api, { policyFor: () => buildPolicy({ nodeConditions: true }) });
  const attemptOf = (name: string): string | undefined => {
    const text = api.read(nodes, name).metadata.annotations?.['example.com/answer'] ?? '{}';
    const { kind, attempt } = JSON.parse(text) as { kind?: string; attempt?: string };
    return kind === 'sent' ? attempt : undefined;
  };
  /** Returns the types of the conditions that are True, without Ready. Checks that Ready is True. */
  const shown = (name: string): readonly string[] => {
    const { conditions = [] } = api.read(nodes, name).status ?? {};
    expect(conditions.find(({ type }) => type === 'Ready')?.status).toBe('True');
    return conditions.flatMap(({ type, status }) =>
      status === 'True' && type !== 'Ready' ? type : [],
    );
  };
  const answer = (said: Observation): void => {
    for (const name of NAMES) {
      const attempt = attemptOf(name);
      if (attempt === undefined) continue;
      expect(shown(name)).toEqual(['MaintenanceInProgress']);
      api.change(nodes, name, (node) => withAnswer(node, { ...said, attempt } as Observation));
    }
  };
  const phase = () => api.read<TablePlan>(dialect.plans, 'plan').status?.phase;
  return { api, newLeader, attemptOf, shown, answer, phase };
}

/**
 * Runs turns until the plan has ended. The leader crashes at the write with number `crashAt`, and another leader
 * continues.
 */
async function runWithCrash(
  crashAt: number,
  isLost: boolean,
  said: Observation,
  { api, newLeader, answer }: ReturnType<typeof scene>,
): Promise<boolean> {
  let calls = 0;
  for (const verb of ['replace', 'patch']) {
    const count = (): void => {
      api.before(verb, () => {
        calls++;
        count();
        if (calls === crashAt && isLost) throw new Crash();
      });
    };
    count();
  }
  let leader = newLeader();
  for (let looks = 0; looks < 24; looks++) {
    const before = calls;
    await leader.look().catch((error: unknown) => expect(error).toBeInstanceOf(Crash));
    if (before < crashAt && calls >= crashAt) leader = newLeader();
    answer(said);
  }
  return calls >= crashAt;
}

test.each<[string, Observation, string]>([
  ['a plan that succeeds', succeeded(), 'done'],
  ['a plan that fails', failed('no disk'), 'failed'],
])('%s leaves no condition True, wherever the leader crashes', async (_title, said, end) => {
  for (const isLost of [true, false])
    for (let crashAt = 1; ; crashAt++) {
      const at = scene();
      const crashed = await runWithCrash(crashAt, isLost, said, at);
      const left = NAMES.map((name) => at.shown(name));
      expect([crashAt, at.phase(), left]).toEqual([crashAt, end, [[], []]]);
      if (!crashed) break;
    }
});

test('a node in progress and a node to come', async () => {
  const { api, newLeader, shown, attemptOf } = scene();
  await newLeader().look();
  expect(NAMES.map(shown)).toEqual([['MaintenanceInProgress'], ['MaintenancePlanned']]);
  expect(attemptOf('n1')).toBeDefined();
  const [condition] = api.read(nodes, 'n1').status?.conditions ?? [];
  expect(condition).toMatchObject({
    reason: 'RefitUpgrade',
    message: 'set by Refit for table//plan/plan-uid',
    lastTransitionTime: expect.stringMatching(/^\d{4}-/),
  });
});

test('the conditions of a deleted plan are cleared, even after a conflict', async () => {
  const { api, newLeader, shown } = scene();
  await newLeader().look();
  api.remove(dialect.plans, 'plan');
  const leader = newLeader();
  api.before('patch nodes/n1', () => api.change(nodes, 'n1', (node) => ({ ...node })));
  await leader.look();
  await leader.look();
  expect(NAMES.map(shown)).toEqual([[], []]);
});

test('without the right, the plan goes on without conditions', async () => {
  const { api, newLeader, attemptOf, phase } = scene();
  const refuse = (): void =>
    api.before('patch nodes', () => {
      refuse();
      throw refusal(403, 'Forbidden');
    });
  refuse();
  const leader = newLeader();
  for (let looks = 0; looks < 8; looks++) {
    await leader.look();
    for (const name of NAMES) {
      const attempt = attemptOf(name);
      if (attempt !== undefined)
        api.change(nodes, name, (node) => withAnswer(node, succeeded(attempt)));
    }
  }
  expect(phase()).toBe('done');
  // The clock does not advance, so each Node was tried only once.
  expect(api.calls.filter((call) => call.startsWith('patch nodes'))).toHaveLength(2);
});

test('a missing right is tried on no further Node', async () => {
  const { api } = scene();
  const many = Array.from({ length: 50 }, (_, index) => `m${index}`);
  for (const name of many) api.put(nodes, buildNode(name));
  api.put(dialect.plans, buildTablePlan({ workers: [...NAMES, ...many] }));
  const refuse = (): void =>
    api.before('patch nodes', () => {
      refuse();
      throw refusal(403, 'Forbidden', MISSING);
    });
  refuse();
  const leader = buildReconciler(dialect, api, {
    policyFor: () => buildPolicy({ nodeConditions: true }),
  });
  for (let looks = 0; looks < 5; looks++) await leader.look();
  // The first turn writes the conditions of one Node in progress and of twenty planned Nodes.
  expect(api.calls.filter((call) => call.startsWith('patch nodes'))).toHaveLength(21);
});
