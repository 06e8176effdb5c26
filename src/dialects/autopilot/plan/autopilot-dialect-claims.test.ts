/** Proves that a k0s Plan never takes a Node that another plan has claimed, and that it keeps its own claims. */
import { expect, test } from 'vitest';
import { MemoryApi } from '../../../../test/support/builders/memory-api.ts';
import { buildControlNode, buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../../test/support/builders/plans.ts';
import { buildReconciler } from '../../../../test/support/builders/reconcilers.ts';
import { buildPolicy } from '../../../../test/support/builders/rollout-policies.ts';
import { buildSignal } from '../../../../test/support/builders/signals.ts';
import { buildWorldOf } from '../../../../test/support/builders/worlds-of-kinds.ts';
import { later } from '../../../../test/support/clock/times.ts';
import { type Plan, plans } from '../../../api/autopilot/plan.ts';
import { statusShards } from '../../../api/refit/status-shard.ts';
import { claimsLeft } from '../../../engine/execute/claim-writes.ts';
import { annotated, nodes } from '../../../kube/resources.ts';
import { claimOf, claimOn, signallerOf, withClaim } from '../../../signal/at-work.ts';
import { controlNodes, MODE_ANNOTATION } from '../../../signal/names.ts';
import { autopilot } from './autopilot-dialect.ts';

const OTHER = 'cattle/system-upgrade/p/p-uid';

function planFor(
  controllers: readonly string[],
  workers: readonly string[],
  status?: Plan['status'],
): Plan {
  const targets = { controllers: listed(...controllers), workers: listed(...workers) };
  return buildPlan({ commands: [{ k0supdate: buildUpdate({ targets }) }] }, status);
}

async function reconcileTimes(api: MemoryApi, times: number): Promise<void> {
  const { preconditions: _asked, ...dialect } = autopilot;
  const { catchUp, reconcile } = buildReconciler(dialect, api, {
    policyFor: () => buildPolicy({ maxUnavailable: { nodes: 1 } }),
    prober: { askControlPlane: async () => await Promise.resolve([{ name: 'c1', ready: true }]) },
  });
  for (let time = 0; time < times; time++) {
    catchUp();
    await reconcile('autopilot');
  }
}

test('a controller waits for the plan that has its Node, whatever the Node is called', async () => {
  const api = new MemoryApi();
  const controller = buildControlNode('c1', {
    annotations: { [MODE_ANNOTATION]: 'controller+worker' },
  });
  const addresses = [{ type: 'Hostname', address: 'host-1' }];
  api.put(controlNodes, { ...controller, status: { ...controller.status, addresses } });
  api.put(nodes, { ...withClaim(buildNode('host-1'), OTHER), spec: { unschedulable: true } });
  api.put(nodes, buildNode('host-2'));
  api.put(plans, planFor(['c1'], []));
  await reconcileTimes(api, 4);
  expect(claimOn(api.read(nodes, 'host-1'))).toBe(OTHER);
  expect(signallerOf(api.read(controlNodes, 'c1'))).toBeUndefined();
});

test('a worker that reports success late is adopted without the claim that another plan has by then', async () => {
  const api = new MemoryApi();
  const signal = buildSignal({ status: 'Completed', created: later(1000), timestamp: later(5000) });
  api.put(nodes, withClaim(buildNode('w1', { annotations: signal }, 'False'), OTHER));
  const workers = [{ name: 'w1', state: 'ApplyFailed', lastUpdatedTimestamp: later(3000) }];
  const commands = [{ id: 0, state: 'ApplyFailed', k0supdate: { workers } }];
  const retried = annotated(planFor([], ['w1'], { state: 'ApplyFailed', commands }), {
    'upgrade.refit.dev/retry': `w1@${later(6000)}`,
  });
  api.put(plans, retried);
  await reconcileTimes(api, 3);
  expect(claimOn(api.read(nodes, 'w1'))).toBe(OTHER);
});

test('while a StatusShard is missing, no claim of the Plan is left over', () => {
  const counts = {
    targets: { total: 1, done: 0, failed: 0 },
    statusShards: { prefix: 'autopilot-x', count: 1 },
  };
  const workers = [{ name: 'w1', state: 'SignalSent', lastUpdatedTimestamp: later(3000) }];
  const command = {
    id: 0,
    state: 'SchedulableWait',
    description: JSON.stringify(counts),
    k0supdate: { workers },
  };
  const plan = planFor([], ['w1', 'w2'], { state: 'SchedulableWait', commands: [command] });
  const claimed = withClaim(buildNode('w1'), claimOf('autopilot', plan));
  const world = buildWorldOf([nodes, [claimed]], [controlNodes, []], [statusShards, []]);
  expect(autopilot.resolve(plan, world, 0).unread).toBeDefined();
  expect(claimsLeft({ dialect: autopilot, world }, [plan], 'autopilot', 0)).toEqual([]);
});
