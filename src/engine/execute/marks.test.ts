/**
 * Tests the annotations for other tools: a node has them while it is in progress, and they are removed at the end,
 * wherever the leader crashes.
 */
import { expect, test } from 'vitest';
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
import { later } from '../../../test/support/clock/times.ts';
import { annotated, nodes } from '../../kube/resources.ts';
import type { Observation } from '../model/facts.ts';

const SCALE = 'cluster-autoscaler.kubernetes.io/scale-down-disabled';
const DISRUPT = 'karpenter.sh/do-not-disrupt';
const NAMES = ['n1', 'n2'];
const FAILED: Observation = {
  kind: 'failed',
  attempt: later(0),
  since: later(0),
  message: 'no disk',
};
const dialect = claimingDialect('table');
const policyFor = () => buildPolicy({ coordinate: ['ClusterAutoscaler', 'Karpenter'] });

class Crash extends Error {}

/** A scene with two nodes. Users had already protected n2 from Karpenter. */
function scene(coordinates = policyFor) {
  const api = new MemoryApi();
  api.put(nodes, buildNode('n1'));
  api.put(nodes, buildNode('n2', { annotations: { [DISRUPT]: 'true' } }));
  api.put(dialect.plans, buildTablePlan({ workers: NAMES }));
  const newLeader = () => buildReconciler(dialect, api, { policyFor: coordinates });
  const annotationsOf = (name: string): Readonly<Record<string, string>> =>
    api.read(nodes, name).metadata.annotations ?? {};
  const isAtWork = (name: string): boolean =>
    annotationsOf(name)['example.com/answer']?.includes('sent') === true;
  /** Returns the annotations that remain on the Nodes, without the answers of the nodes. */
  const left = () =>
    NAMES.map((name) =>
      Object.keys(annotationsOf(name)).filter((key) => key !== 'example.com/answer'),
    );
  const answer = (kind: Observation): void => {
    for (const name of NAMES.filter(isAtWork))
      api.change(nodes, name, (node) => {
        expect(node.metadata.annotations).toMatchObject({ [SCALE]: 'true', [DISRUPT]: 'true' });
        const { attempt } = JSON.parse(annotationsOf(name)['example.com/answer'] ?? '') as {
          attempt: string;
        };
        return withAnswer(node, { ...kind, attempt } as Observation);
      });
  };
  const phase = () => api.read<TablePlan>(dialect.plans, 'plan').status?.phase;
  return { api, newLeader, annotationsOf, isAtWork, left, answer, phase };
}

const LEFT = [[], [DISRUPT]];

/**
 * Runs turns until the plan has ended. The leader crashes at the call with number `crashAt`, and another leader
 * continues.
 */
async function runWithCrash(
  crashAt: number,
  isLost: boolean,
  kind: Observation,
  { api, newLeader, answer, phase }: ReturnType<typeof scene>,
): Promise<boolean> {
  let calls = 0;
  let crashed = false;
  const crash = (): void => {
    api.before('replace', () => {
      calls++;
      crash();
      if (calls !== crashAt) return;
      crashed = true;
      if (isLost) throw new Crash();
    });
  };
  crash();
  let leader = newLeader();
  for (let looks = 0; looks < 30; looks++) {
    const wasAt = calls;
    await leader.look().catch((error: unknown) => expect(error).toBeInstanceOf(Crash));
    if (wasAt < crashAt && calls >= crashAt) leader = newLeader();
    answer(kind);
    if (looks > 20 && ['done', 'failed'].includes(phase() ?? '')) break;
  }
  return crashed;
}

test.each<[string, Observation, string]>([
  ['a plan that succeeds', succeeded(), 'done'],
  ['a plan that fails', FAILED, 'failed'],
])('%s leaves no mark, wherever the leader crashes', async (_title, kind, end) => {
  for (const isLost of [true, false])
    for (let crashAt = 1; ; crashAt++) {
      const at = scene();
      const crashed = await runWithCrash(crashAt, isLost, kind, at);
      expect([crashAt, at.phase(), at.left()]).toEqual([crashAt, end, LEFT]);
      if (!crashed) break;
    }
});

test('a node is marked before its signal', async () => {
  const { api, newLeader, annotationsOf } = scene();
  await newLeader().look();
  const writes = api.calls.filter((call) => call.startsWith('replace nodes/n1'));
  expect(writes).toHaveLength(2);
  expect(annotationsOf('n1')).toMatchObject({
    [SCALE]: 'true',
    'upgrade.refit.dev/scale-down-disabled-by': 'table//plan/plan-uid',
    [DISRUPT]: 'true',
    'upgrade.refit.dev/do-not-disrupt-by': 'table//plan/plan-uid',
  });
});

test('a policy without coordination writes no mark', async () => {
  const { newLeader, isAtWork, annotationsOf } = scene(() => buildPolicy());
  await newLeader().look();
  expect(isAtWork('n1')).toBe(true);
  expect(Object.keys(annotationsOf('n1'))).toEqual(['example.com/answer']);
});

test('a mark that somebody removes is not set again', async () => {
  const { api, newLeader, annotationsOf } = scene();
  const leader = newLeader();
  await leader.look();
  api.change(nodes, 'n1', (node) => {
    const { [SCALE]: _gone, ...annotations } = node.metadata.annotations ?? {};
    return { ...node, metadata: { ...node.metadata, annotations } };
  });
  await leader.look();
  expect(annotationsOf('n1')).not.toHaveProperty([SCALE]);
});

test('a policy that is edited meanwhile marks the nodes in progress', async () => {
  const { newLeader, isAtWork, annotationsOf, api } = scene(() => buildPolicy());
  await newLeader().look();
  expect(isAtWork('n1')).toBe(true);
  await buildReconciler(dialect, api, { policyFor }).look();
  expect(annotationsOf('n1')).toMatchObject({ [SCALE]: 'true', [DISRUPT]: 'true' });
});

test('the marks of a deleted plan go, even after a conflict', async () => {
  const { api, newLeader, left } = scene();
  await newLeader().look();
  api.remove(dialect.plans, 'plan');
  const leader = newLeader();
  api.before('replace nodes/n1', () =>
    api.change(nodes, 'n1', (node) => annotated(node, { later: 'x' })),
  );
  await leader.look();
  await leader.look();
  expect(left()).toEqual([['later'], [DISRUPT]]);
});

test('a refused mark keeps the node from starting, and another node starts', async () => {
  const { api, newLeader, isAtWork } = scene();
  api.before('replace nodes/n1', () => {
    throw refusal(403, 'Forbidden');
  });
  await newLeader().look();
  expect(isAtWork('n1')).toBe(false);
});
