/** Tests that a Plan of k0s is refused before its first node if a worker would be too old for the new controllers. */
import { expect, test } from 'vitest';
import { MemoryApi } from '../../../../test/support/builders/memory-api.ts';
import { buildControlNode, buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../../test/support/builders/plans.ts';
import { buildReconciler } from '../../../../test/support/builders/reconcilers.ts';
import { buildPolicy } from '../../../../test/support/builders/rollout-policies.ts';
import { FakeClock } from '../../../../test/support/clock/fake-clock.ts';
import { later, T0 } from '../../../../test/support/clock/times.ts';
import { plans } from '../../../api/autopilot/plan.ts';
import type { RolloutPolicy } from '../../../engine/policy/rollout-policy.ts';
import { type Node, nodes } from '../../../kube/resources.ts';
import { decodeSignal } from '../../../signal/annotations.ts';
import { type ControlNode, controlNodes } from '../../../signal/names.ts';
import { autopilot } from './autopilot-dialect.ts';

function worker(name: string, kubeletVersion: string, more: Partial<Node['metadata']> = {}): Node {
  const node = buildNode(name, more);
  return { ...node, status: { ...node.status, nodeInfo: { kubeletVersion } } };
}

function controller(name: string, k0sVersion: string): ControlNode {
  const node = buildControlNode(name);
  return { ...node, status: { ...node.status, k0sVersion } };
}

/** Lets a leader carry out a Plan that upgrades controller c1 alone from v1.35 to v1.36. */
async function upgradedBeside(others: readonly Node[], more: Partial<RolloutPolicy> = {}) {
  const api = new MemoryApi();
  const targets = { controllers: listed('c1'), workers: listed() };
  api.put(plans, buildPlan({ commands: [{ k0supdate: buildUpdate({ targets }) }] }));
  api.put(controlNodes, controller('c1', 'v1.35.4+k0s.0'));
  for (const node of others) api.put(nodes, node);
  const leader = buildReconciler(autopilot, api, {
    clock: new FakeClock(T0),
    policyFor: () => buildPolicy(more),
    prober: {
      askControlPlane: async () => await Promise.resolve([{ name: 'c1', ready: true }]),
    },
  });
  for (let turn = 0; turn < 5; turn++) {
    leader.catchUp();
    await leader.reconcile('autopilot');
  }
  const { annotations } = api.read(controlNodes, 'c1').metadata;
  const { status } = api.read(plans, 'autopilot');
  return { state: status?.state, text: JSON.stringify(status), signal: decodeSignal(annotations) };
}

test('a Plan that would leave a worker two minor versions behind its controllers ends before any node starts', async () => {
  const { state, text, signal } = await upgradedBeside([
    worker('w1', 'v1.34.6+k0s'),
    worker('w2', 'v1.35.4+k0s'),
  ]);
  expect(signal).toBeUndefined();
  expect(state).toBe('Warning');
  expect(text).toContain(
    'w1 would still have a kubelet of v1.34.6+k0s when the API server of c1 has v1.36.3+k0s.2',
  );
});

test.each<[string, readonly Node[], Partial<RolloutPolicy>]>([
  ['every worker is one minor version behind', [worker('w1', 'v1.35.4+k0s')], {}],
  [
    'a policy allows a worker that is two minor versions behind',
    [worker('w1', 'v1.34.6+k0s')],
    { allow: new Set(['KubeletBehind']) },
  ],
  [
    'only a virtual Node reports a version that is two minor versions behind',
    [worker('v1', 'v1.34.6', { labels: { type: 'virtual-kubelet' } })],
    {},
  ],
  [
    'only the Node of the controller itself still shows an old version',
    [worker('c1', 'v1.34.6+k0s')],
    {},
  ],
])('a Plan of k0s starts its controller if %s', async (_title, others, policy) => {
  const { signal } = await upgradedBeside(others, policy);
  expect(signal?.command.version).toBe('v1.36.3+k0s.2');
  expect(Date.parse(signal?.created ?? '')).toBeGreaterThanOrEqual(Date.parse(later(0)));
});
