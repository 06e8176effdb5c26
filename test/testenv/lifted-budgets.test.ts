/**
 * Tests PodDisruptionBudgets that allow no disruption while all their pods are healthy, on a real API server: stand-ins of
 * operators change such a budget when they see the cordon or the refused eviction, or never.
 */
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest';
import { upgradePolicies } from '../../src/api/kinds.ts';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { podDisruptionBudgets, pods } from '../../src/kube/resources.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { installKinds, kubeconfigFor } from './control-plane.ts';
import { auditedEvictions, clientOf } from './drain-stage.ts';
import { Puppets } from './puppets.ts';
import { RefitProcess, runRefit } from './refit-process.ts';

const POLICY = 'lifted-budgets';
const AT = { namespace: 'default' };
const TOO_MANY_REQUESTS = 429;
let admin: KubeClient;
let viewer = '';

beforeAll(async () => {
  await installKinds();
  admin = await clientOf('admin');
  viewer = await kubeconfigFor('viewer');
});

afterEach(async () => await admin.delete(upgradePolicies, POLICY).catch(() => undefined));
afterAll(() => admin.close());

const startLeader = async (): Promise<RefitProcess> =>
  new RefitProcess('controller', '--kubeconfig', await kubeconfigFor('controller'));

const underPolicy = async (spec: UpgradePolicySpec): Promise<unknown> =>
  await admin.create(upgradePolicies, buildUpgradePolicy(POLICY, spec));

const run = async (...args: readonly string[]): Promise<string> =>
  (await runRefit(...args, '--kubeconfig', viewer)).stdout.join('\n');

/** Creates a pod on the node, and a budget that wants it to be healthy at all times. Returns the key of the pod. */
async function addHeldPod(puppets: Puppets, name: string): Promise<string> {
  const pod = await puppets.addLastingPod(name);
  const selector = { matchLabels: { app: `${name}-lasting` } };
  await admin.create(podDisruptionBudgets, {
    metadata: { name, ...AT },
    spec: { selector, minAvailable: 1 },
  });
  onTestFinished(async () => await admin.delete(podDisruptionBudgets, name, AT));
  await puppets.until(async () => {
    const { status } = await admin.get(podDisruptionBudgets, name, AT);
    expect(status).toMatchObject({ expectedPods: 1, currentHealthy: 1, disruptionsAllowed: 0 });
  });
  return pod;
}

async function lift(name: string): Promise<void> {
  const patch = { spec: { minAvailable: 0 } };
  await admin.patch(podDisruptionBudgets, name, patch, { ...AT, type: 'merge' });
}

async function isEvicted(pod: string): Promise<boolean> {
  const { metadata } = await admin.get(pods, pod.split('/')[1] ?? '', AT);
  return metadata.deletionTimestamp !== undefined;
}

test.each<[string, string, (puppets: Puppets, name: string) => Promise<void>]>([
  [
    'the cordon',
    'lifted-w1',
    async (puppets, name) => expect(await puppets.cordon(name)).toBe('ours'),
  ],
  [
    'the refused eviction',
    'lifted-w2',
    async (_puppets, name) =>
      expect(await auditedEvictions(`${name}-lasting`)).toContain(TOO_MANY_REQUESTS),
  ],
])(
  'an operator that changes its budget when it sees %s gets the node drained, and the upgrade goes on',
  async (_what, name, sees) => {
    await using puppets = await Puppets.create(admin, name);
    const pod = await addHeldPod(puppets, name);
    await puppets.plan(1);
    expect(await run('preview')).toContain(
      `warning  the drain of ${name} may not end: PodDisruptionBudget default/${name} blocks ${pod}: it wants 1 of its 1 pods healthy at all times (minAvailable: 1). Refit cordons the node, and asks for the evictions for at most 1 h`,
    );
    await using leader = await startLeader();
    await puppets.says(name, 'Cordoning');
    await puppets.until(async () => await sees(puppets, name));
    await lift(name);
    await puppets.until(async () => expect(await isEvicted(pod)).toBe(true));
    await puppets.release(pod);
    await puppets.says(name, 'UnCordoning');
    await puppets.says(name, 'Completed');
    expect((await puppets.end()).state).toBe('Completed');
    // A puppet completes the update without waiting for the leader, which may uncordon the node after that.
    await puppets.until(async () => expect(await puppets.cordon(name)).toBe('none'));
    expect(await leader.stop('SIGTERM')).toBe(0);
  },
);

test.each([
  ['Stop', 'lifted-w3', 'ApplyFailed', 'DrainTooLong'],
  ['Skip', 'lifted-w4', 'ApplyFailed', 'DrainTooLong'],
  ['SkipNode', 'lifted-w5', 'Completed', 'DoneWithSkipped'],
] as const)(
  'a budget that nobody changes: at the deadline the node is uncordoned, and the plan does what onDeadline %s says',
  async (onDeadline, name, state, reason) => {
    await underPolicy({ drain: { onDeadline }, deadlines: { drain: '4s' } });
    await using puppets = await Puppets.create(admin, name);
    const pod = await addHeldPod(puppets, name);
    await using leader = await startLeader();
    await puppets.plan(1);
    await puppets.says(name, 'Cordoning');
    await puppets.until(async () => expect(await puppets.cordon(name)).toBe('ours'));
    const end = await puppets.end();
    expect(end).toEqual({ state, description: expect.stringContaining(reason) as string });
    await puppets.until(async () => expect(await puppets.cordon(name)).toBe('none'));
    expect(await isEvicted(pod)).toBe(false);
    expect(await leader.stop('SIGTERM')).toBe(0);
  },
);
