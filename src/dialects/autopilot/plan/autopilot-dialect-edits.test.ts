/** Proves which version nodes get when a running Plan is edited: the new one by default, the old one if the policy ignores edits. */
import { expect, test } from 'vitest';
import { MemoryApi } from '../../../../test/support/builders/memory-api.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../../test/support/builders/plans.ts';
import { buildReconciler } from '../../../../test/support/builders/reconcilers.ts';
import { buildPolicy } from '../../../../test/support/builders/rollout-policies.ts';
import { lookAt } from '../../../../test/support/builders/views.ts';
import { FakeClock } from '../../../../test/support/clock/fake-clock.ts';
import { HOUR, later, T0 } from '../../../../test/support/clock/times.ts';
import { type Plan, type PlanCommand, plans } from '../../../api/autopilot/plan.ts';
import { annotated, nodes } from '../../../kube/resources.ts';
import { decodeSignal, encodeSignal } from '../../../signal/annotations.ts';
import { autopilot } from './autopilot-dialect.ts';

const NEWER = 'v1.36.4+k0s.0';
const FOLLOW = buildPolicy();
const IGNORE = buildPolicy({ ignoresEdits: true });
const update = buildUpdate({ targets: { workers: listed('w1', 'w2') } });

function scene() {
  const api = new MemoryApi();
  const plan = buildPlan({ commands: [{ k0supdate: update }] });
  api.put(plans, { ...plan, metadata: { ...plan.metadata, generation: 1 } });
  for (const name of ['w1', 'w2']) api.put(nodes, buildNode(name));
  /** A new leader reconciles each time, as after a crash, so only the API server keeps state. */
  const reconcile = async (policy = IGNORE): Promise<void> => {
    const leader = buildReconciler(autopilot, api, {
      policyFor: () => policy,
      clock: new FakeClock(T0 + HOUR),
    });
    leader.catchUp();
    await leader.reconcile('autopilot');
  };
  const edit = (command: PlanCommand, generation: number, id = 'id1'): void =>
    api.change(plans, 'autopilot', (seen) => ({
      ...seen,
      metadata: { ...seen.metadata, generation },
      spec: { ...seen.spec, id, commands: [command] },
    }));
  const complete = (node: string): void =>
    api.change(nodes, node, (seen) => {
      const sent = decodeSignal(seen.metadata.annotations);
      if (!sent) throw new Error(`${node} has no signal`);
      const status = { status: 'Completed', timestamp: later(HOUR) };
      return annotated(seen, encodeSignal({ ...sent, status }));
    });
  const sent = (node: string): unknown =>
    decodeSignal(api.read(nodes, node).metadata.annotations)?.command;
  const read = (): Plan => api.read(plans, 'autopilot');
  return { api, reconcile, edit, complete, sent, read };
}

test.each([
  ['by default, nodes that have not started get the edited version', FOLLOW, NEWER],
  ['if the policy ignores edits, all nodes get the first version', IGNORE, update.version],
])('%s', async (_title, policy, version) => {
  const { reconcile, edit, complete, sent } = scene();
  await reconcile(policy);
  expect(sent('w1')).toMatchObject({ version: update.version });
  edit({ k0supdate: { ...update, version: NEWER } }, 2);
  complete('w1');
  await reconcile(policy);
  expect(sent('w2')).toMatchObject({ version });
});

test('if the policy ignores edits, an edit that is invalid or changes the id is ignored too', async () => {
  const { reconcile, edit, complete, sent, read } = scene();
  await reconcile();
  edit({ k0supdate: { ...update, version: 'latest', platforms: {} } }, 2, 'id2');
  complete('w1');
  await reconcile();
  expect(sent('w2')).toMatchObject({ version: update.version });
  complete('w2');
  await reconcile();
  expect(read().status?.state).toBe('Completed');
  expect(read().spec.id).toBe('id2');
});

test('the record keeps the spec without the names of nodes, and only while the Plan runs', async () => {
  const { reconcile, complete, read } = scene();
  const described = (): unknown => JSON.parse(read().status?.commands[0]?.description ?? 'null');
  await reconcile();
  const targets = { workers: { discovery: { static: {} } } };
  expect(described()).toEqual({
    generation: 1,
    started: { id: 'id1', commands: [{ k0supdate: { ...update, targets } }] },
  });
  complete('w1');
  await reconcile();
  complete('w2');
  await reconcile();
  expect(described()).toEqual({ generation: 1 });
});

test('an ignored edit is reported once the Plan has ended', async () => {
  const { api, reconcile, edit, complete, read } = scene();
  await reconcile();
  edit(
    {
      k0supdate: { ...update, platforms: { 'linux-amd64': { url: 'https://example.com/other' } } },
    },
    2,
  );
  complete('w1');
  await reconcile();
  complete('w2');
  await reconcile();
  const workers = ['w1', 'w2'].map((name) => api.read(nodes, name));
  expect(await lookAt([read()], [], workers, T0 + HOUR)).toMatchObject([{ phase: 'edited' }]);
});

test('a policy that no longer ignores edits lets them take effect', async () => {
  const { reconcile, edit, complete, sent } = scene();
  await reconcile(IGNORE);
  edit({ k0supdate: { ...update, version: NEWER } }, 2);
  complete('w1');
  await reconcile(FOLLOW);
  expect(sent('w2')).toMatchObject({ version: NEWER });
});
