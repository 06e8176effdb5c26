/**
 * Proves that the Node of a controller stays claimed while the controller works for a deleted Plan, and that the next
 * Plan takes over the claim.
 */
import { expect, test } from 'vitest';
import { buildCattlePlan } from '../../../../test/support/builders/cattle-plans.ts';
import { MemoryApi } from '../../../../test/support/builders/memory-api.ts';
import { buildControlNode, buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../../test/support/builders/plans.ts';
import { buildReconciler } from '../../../../test/support/builders/reconcilers.ts';
import { buildPolicy } from '../../../../test/support/builders/rollout-policies.ts';
import { buildSignal } from '../../../../test/support/builders/signals.ts';
import { FakeClock } from '../../../../test/support/clock/fake-clock.ts';
import { later, T0 } from '../../../../test/support/clock/times.ts';
import { type Plan, plans } from '../../../api/autopilot/plan.ts';
import { cattlePlans } from '../../../api/kinds.ts';
import { annotated, jobs, type KubeObject, nodes } from '../../../kube/resources.ts';
import { decodeSignal, encodeSignal } from '../../../signal/annotations.ts';
import { claimOn, withClaim } from '../../../signal/at-work.ts';
import { controlNodes, MODE_ANNOTATION, ROLLOUT_ANNOTATION } from '../../../signal/names.ts';
import { cattle } from '../../cattle/plan/cattle-dialect.ts';
import { DEFAULT_JOB_SETTINGS } from '../../cattle/plan/config.ts';
import { autopilot } from './autopilot-dialect.ts';

const LIMITED = buildPolicy({ maxUnavailable: { nodes: 1 } });

function planOf(uid: string): Plan {
  const targets = { controllers: listed('c1'), workers: listed() };
  const { metadata, ...plan } = buildPlan({
    id: uid,
    commands: [{ k0supdate: buildUpdate({ targets }) }],
  });
  return { ...plan, metadata: { ...metadata, uid } };
}

/** Returns a cluster with a controller that runs a kubelet, and with another Node. */
function scene() {
  const api = new MemoryApi();
  const clock = new FakeClock(T0);
  api.put(
    controlNodes,
    buildControlNode('c1', { annotations: { [MODE_ANNOTATION]: 'controller+worker' } }),
  );
  for (const name of ['c1', 'x'])
    api.put(nodes, buildNode(name, { labels: { 'kubernetes.io/hostname': name } }));
  const policyFor = () => LIMITED;
  const askControlPlane = async () => await Promise.resolve([{ name: 'c1', ready: true }]);
  const { preconditions: _asked, ...dialect } = autopilot;
  const k0s = buildReconciler(dialect, api, { clock, policyFor, prober: { askControlPlane } });
  const rancher = cattle({
    name: 'controller',
    namespace: 'system-upgrade',
    job: DEFAULT_JOB_SETTINGS,
  });
  const other = buildReconciler(rancher, api, { clock, policyFor });
  const look = async (
    { catchUp, reconcile }: typeof k0s | typeof other,
    key: string,
  ): Promise<void> => {
    for (let looks = 0; looks < 6; looks++) {
      catchUp();
      await clock.runUntil(reconcile(key));
      await clock.advance(2_000);
    }
  };
  const made = api.view(jobs);
  return {
    api,
    lookAtK0s: async () => await look(k0s, 'autopilot'),
    jobsOfOther: async (): Promise<readonly KubeObject[]> => {
      await look(other, 'system-upgrade/other');
      made.catchUp();
      return made.list();
    },
    reports: (status: string): void =>
      api.change(controlNodes, 'c1', (node) => {
        const data = decodeSignal(node.metadata.annotations);
        if (!data) throw new Error('there is no signal');
        return annotated(
          node,
          encodeSignal({ ...data, status: { status, timestamp: later(1_000) } }),
        );
      }),
    claim: () => claimOn(api.read(nodes, 'c1')),
    rolloutOf: () => api.read(controlNodes, 'c1').metadata.annotations?.[ROLLOUT_ANNOTATION],
  };
}

/** Returns a cluster whose Plan was deleted while its controller was in progress. */
async function deletedAtWork() {
  const built = scene();
  built.api.put(plans, planOf('first-uid'));
  await built.lookAtK0s();
  built.reports('ApplyingUpdate');
  await built.lookAtK0s();
  built.api.remove(plans, 'autopilot');
  await built.lookAtK0s();
  expect(built.claim()).toBe('autopilot//autopilot/first-uid');
  return built;
}

test.each(['c1', 'x'])(
  'no Plan of Rancher starts on its Node, or on another one: %s',
  async (name) => {
    const { api, jobsOfOther } = await deletedAtWork();
    const nodeSelector = { matchLabels: { 'kubernetes.io/hostname': name } };
    api.put(cattlePlans, buildCattlePlan('other', { nodeSelector }));
    expect(await jobsOfOther()).toEqual([]);
  },
);

test('the claim ends with the work', async () => {
  const { reports, lookAtK0s, claim } = await deletedAtWork();
  reports('Completed');
  await lookAtK0s();
  expect(claim()).toBeUndefined();
});

test('the next Plan takes it over', async () => {
  const { api, lookAtK0s, claim, rolloutOf } = await deletedAtWork();
  api.put(plans, planOf('second-uid'));
  await lookAtK0s();
  expect([claim(), rolloutOf()]).toEqual([
    'autopilot//autopilot/second-uid',
    expect.stringMatching(/^second-uid/),
  ]);
});

test('a signal of another plan keeps no claim', async () => {
  const { api, lookAtK0s, claim } = scene();
  const { metadata, ...node } = buildControlNode('c1', {
    annotations: buildSignal({ planId: 'former', status: 'Restart' }),
  });
  const annotations = { ...metadata.annotations, [MODE_ANNOTATION]: 'controller+worker' };
  api.put(controlNodes, { ...node, metadata: { ...metadata, annotations } });
  api.change(nodes, 'c1', (each) => withClaim(each, 'autopilot//autopilot/former-uid'));
  await lookAtK0s();
  expect(claim()).toBeUndefined();
});
