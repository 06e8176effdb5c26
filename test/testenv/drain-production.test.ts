/**
 * Tests drains with `drain.loadBalancers` and `drain.volumes` on a real API server: the content of the Node, the output
 * of `refit why`, and that nothing is left on the Node, however the plan ends.
 */
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { plans } from '../../src/api/autopilot/plan.ts';
import { upgradePolicies } from '../../src/api/kinds.ts';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import * as marks from '../../src/drain/cordon-marks.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import {
  nodes,
  persistentVolumes,
  podDisruptionBudgets,
  pods,
  volumeAttachments,
} from '../../src/kube/resources.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { installKinds, kubeconfigFor } from './control-plane.ts';
import { clientOf } from './drain-stage.ts';
import { PATIENCE, Puppets } from './puppets.ts';
import { RefitProcess, runRefit } from './refit-process.ts';

const NAMESPACE = 'default';
const POLICY = 'drain-production';
const FREE = { cordon: 'none', label: undefined };
let admin: KubeClient;
let viewer = '';
let operator = '';

beforeAll(async () => {
  await installKinds();
  admin = await clientOf('admin');
  viewer = await kubeconfigFor('viewer');
  operator = await kubeconfigFor('operator');
});

afterEach(async () => await admin.delete(upgradePolicies, POLICY).catch(() => undefined));
afterAll(() => admin.close());

const startLeader = async (): Promise<RefitProcess> =>
  new RefitProcess('controller', '--kubeconfig', await kubeconfigFor('controller'));

async function drainBy(
  drain: NonNullable<UpgradePolicySpec['drain']>,
  more: UpgradePolicySpec = {},
) {
  await admin.create(upgradePolicies, buildUpgradePolicy(POLICY, { drain, ...more }));
}

async function why(node: string): Promise<string> {
  return (await runRefit('why', node, '--kubeconfig', viewer)).stdout.join('\n');
}

async function markedAs(puppets: Puppets, name: string): Promise<object> {
  const { labels } = (await puppets.node(name)).metadata;
  return { cordon: await puppets.cordon(name), label: labels?.[marks.EXCLUSION_LABEL] };
}

async function isEvicted(pod: string): Promise<boolean> {
  const [, name = ''] = pod.split('/');
  const { metadata } = await admin.get(pods, name, { namespace: NAMESPACE });
  return metadata.deletionTimestamp !== undefined;
}

/** Attaches a volume of the claim `data` to the node. The returned function detaches it. */
async function attach(node: string): Promise<() => Promise<void>> {
  const volume = `${node}-volume`;
  await admin.create(persistentVolumes, {
    metadata: { name: volume },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'none',
      claimRef: { namespace: NAMESPACE, name: 'data' },
      csi: { driver: 'csi.example.com', volumeHandle: volume },
    } as object,
  });
  onTestFinished(async () => {
    const patch = { metadata: { finalizers: null } };
    await admin.patch(persistentVolumes, volume, patch, { type: 'merge' });
    await admin.delete(persistentVolumes, volume);
  });
  await admin.create(volumeAttachments, {
    metadata: { name: `${node}-attachment` },
    spec: {
      nodeName: node,
      attacher: 'csi.example.com',
      source: { persistentVolumeName: volume },
    },
  });
  return async () => {
    await admin.delete(volumeAttachments, `${node}-attachment`);
  };
}

test('the label, its time, the evictions and the volumes, in this order; another leader takes over in the middle', async () => {
  const name = 'prod-w1';
  const ours = { cordon: 'ours', label: 'refit' };
  await drainBy({
    loadBalancers: { exclude: true, grace: '10s' },
    volumes: { waitForDetach: true, timeout: '10m' },
  });
  await using puppets = await Puppets.create(admin, name);
  const pod = await puppets.addLastingPod(name);
  const detach = await attach(name);
  await using first = await startLeader();
  await puppets.plan(1);
  await puppets.says(name, 'Cordoning');

  await puppets.until(async () => expect(await markedAs(puppets, name)).toEqual(ours));
  expect(await isEvicted(pod)).toBe(false);
  await first.stop('SIGKILL');
  expect(await markedAs(puppets, name)).toEqual(ours);
  await using second = await startLeader();
  await puppets.until(async () => expect(await isEvicted(pod)).toBe(true));
  await puppets.release(pod);

  const volume = `no pod is left on node ${name}; waiting for 1 volume to detach: ${NAMESPACE}/data`;
  await puppets.until(async () => expect(await why(name)).toContain(volume));
  expect((await puppets.signal(name))?.status?.status).toBe('Cordoning');
  expect(await markedAs(puppets, name)).toEqual(ours);
  await detach();
  await puppets.until(async () =>
    expect((await puppets.signal(name))?.status?.status).toBe('ApplyingUpdate'),
  );
  await puppets.says(name, 'UnCordoning');
  await puppets.until(async () => expect(await markedAs(puppets, name)).toEqual(FREE));
  await puppets.says(name, 'Completed');
  expect((await puppets.end()).state).toBe('Completed');
  expect(await second.stop('SIGTERM')).toBe(0);
});

test('a budget for which the policy waits keeps the node as it is, and the label of kubeadm stays to the end', async () => {
  const name = 'prod-w2';
  await drainBy({
    loadBalancers: { exclude: true, grace: '1s' },
    zeroDisruptionBudgets: 'Wait',
  });
  await using puppets = await Puppets.create(admin, name);
  const labels = { [marks.EXCLUSION_LABEL]: '' };
  await admin.patch(nodes, name, { metadata: { labels } }, { type: 'merge' });
  const pod = await puppets.addLastingPod(name);
  const matchLabels = { app: `${name}-lasting` };
  const budget = { metadata: { name, namespace: NAMESPACE } };
  const at = { namespace: NAMESPACE };
  await admin.create(podDisruptionBudgets, {
    ...budget,
    spec: { selector: { matchLabels }, minAvailable: 1 },
  });
  onTestFinished(async () => await admin.delete(podDisruptionBudgets, name, at));
  await using leader = await startLeader();
  await puppets.plan(1);
  await puppets.until(async () =>
    expect(await why(name)).toContain(`PodDisruptionBudget ${NAMESPACE}/${name}`),
  );
  expect(await markedAs(puppets, name)).toEqual({ cordon: 'none', label: '' });
  await admin.patch(
    podDisruptionBudgets,
    name,
    { spec: { minAvailable: 0 } },
    { ...at, type: 'merge' },
  );
  await puppets.says(name, 'Cordoning');
  await puppets.until(async () => expect(await isEvicted(pod)).toBe(true));
  expect(await markedAs(puppets, name)).toEqual({ cordon: 'ours', label: '' });
  await puppets.release(pod);
  await puppets.says(name, 'UnCordoning');
  await puppets.until(async () =>
    expect(await markedAs(puppets, name)).toEqual({ cordon: 'none', label: '' }),
  );
  await puppets.says(name, 'Completed');
  expect((await puppets.end()).state).toBe('Completed');
  expect(await leader.stop('SIGTERM')).toBe(0);
});

test.each([
  [
    'an abort',
    'prod-w3',
    async () => expect((await runRefit('abort', '--kubeconfig', operator)).code).toBe(0),
  ],
  ['the deletion of the plan', 'prod-w4', async () => await admin.delete(plans, 'autopilot')],
] as const)(
  'after %s in the middle of the drain neither cordon nor label is left',
  async (_what, name, end) => {
    await drainBy({ loadBalancers: { exclude: true, grace: '1s' } });
    await using puppets = await Puppets.create(admin, name);
    const pod = await puppets.addLastingPod(name);
    await using leader = await startLeader();
    await puppets.plan(1);
    await puppets.says(name, 'Cordoning');
    await puppets.until(async () => expect(await isEvicted(pod)).toBe(true));
    expect(await markedAs(puppets, name)).toEqual({ cordon: 'ours', label: 'refit' });
    await end();
    await puppets.until(async () => expect(await markedAs(puppets, name)).toEqual(FREE));
    expect(await leader.stop('SIGTERM')).toBe(0);
  },
);

test('a node whose drain takes too long is left out, and loses cordon and label', async () => {
  const name = 'prod-w5';
  await drainBy(
    { loadBalancers: { exclude: true, grace: '1s' }, onDeadline: 'SkipNode' },
    { deadlines: { drain: '4s' } },
  );
  await using puppets = await Puppets.create(admin, name, 'prod-w6');
  await puppets.addLastingPod(name);
  await using leader = await startLeader();
  await puppets.plan(1);
  await puppets.says(name, 'Cordoning');
  await puppets.until(async () => expect(await puppets.signal('prod-w6')).toBeDefined());
  await puppets.says('prod-w6', 'Completed');
  const { state, description } = await puppets.end();
  expect([state, description]).toEqual(['Completed', expect.stringContaining('DoneWithSkipped')]);
  expect(description).toContain(name);
  await puppets.until(async () => expect(await markedAs(puppets, name)).toEqual(FREE));
  expect(await leader.stop('SIGTERM')).toBe(0);
});

test("the kubelet's own credentials may set the label and remove it", async () => {
  const name = 'prod-own';
  await using puppets = await Puppets.create(admin, name);
  const own = await clientOf({ node: name });
  onTestFinished(() => own.close());
  const write = async (change: (node: Awaited<ReturnType<Puppets['node']>>) => object) =>
    await vi.waitFor(
      async () => await own.replace(nodes, change(await own.get(nodes, name)) as never),
      PATIENCE,
    );
  const label = { metadata: { labels: { 'node-restriction.kubernetes.io/pool': 'mine' } } };
  await expect(own.patch(nodes, name, label, { type: 'merge' })).rejects.toThrow('not allowed');
  await write((node) => marks.withExclusion(marks.withCordon(node, 'plan/1')));
  expect(await markedAs(puppets, name)).toEqual({ cordon: 'ours', label: 'refit' });
  await write(marks.withoutCordon);
  expect(await markedAs(puppets, name)).toEqual(FREE);
});
