/** Tests that no node fails because its leader is gone: real processes are killed or lose their lease in the middle of a drain. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Cluster } from '../../sandbox/cluster/cluster.ts';
import { plans } from '../../src/api/autopilot/plan.ts';
import { upgradePolicies } from '../../src/api/kinds.ts';
import { LEADER_LEASE } from '../../src/dialects/autopilot/leader-lease.ts';
import { cordonOwner, pendingOwner } from '../../src/drain/cordon-marks.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { leases, nodes, pods } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { type AgentReport, decodeSignal, encodeReport } from '../../src/signal/annotations.ts';
import type { Process } from '../../tools/controlplane/process.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { installKinds, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { startOwnCluster } from './own-cluster.ts';
import { PATIENCE, Puppets } from './puppets.ts';
import { RefitProcess } from './refit-process.ts';

const FROM = 'v1.36.3+k0s.0';
const NEXT = 'v1.36.3+k0s.2';
const LAST = 'v1.36.3+k0s.3';
const AT_WORK = 'worker1';
const TO_COME = 'worker2';
const NAMESPACE = 'default';
const until = async (check: () => Promise<void>): Promise<void> =>
  await vi.waitFor(check, PATIENCE);

beforeAll(async () => {
  await installKinds();
});

describe('a leader that is killed in the middle of a drain', () => {
  let cluster: Cluster;
  let admin: KubeClient;

  beforeAll(async () => {
    cluster = await startOwnCluster({
      controllers: 0,
      workers: 2,
      version: FROM,
      offers: [NEXT, LAST],
      restartDelayMs: 100,
      agentFlags: ['--soak', '200ms'],
    });
    admin = cluster.client;
  });
  afterAll(async () => {
    await cluster.stop();
  });

  /** Creates a pod that can be evicted. The pod does not end until the test calls the returned function. */
  async function holdPod(): Promise<() => Promise<void>> {
    const name = 'loss-held';
    const namespace = NAMESPACE;
    const metadata = { name, namespace, finalizers: ['example.com/held'] };
    const spec = {
      nodeName: AT_WORK,
      terminationGracePeriodSeconds: 0,
      containers: [{ name: 'c', image: 'example.com/none' }],
    };
    await admin.create(pods, { metadata, spec }, { namespace });
    return async () => {
      await admin.patch(
        pods,
        name,
        { metadata: { finalizers: null } },
        { type: 'merge', namespace },
      );
    };
  }

  /** Starts a plan. Resolves when its first node is being drained and its second node waits. */
  async function drainUnder(
    name: string,
    version: string,
  ): Promise<{ leader: Process; held: () => Promise<void> }> {
    const held = await holdPod();
    const leader = await cluster.startController(name);
    const { metadata } = await admin.create(
      plans,
      cluster.plan({ id: name, version, concurrent: 1 }),
    );
    await until(async () => {
      expect(cordonOwner(await admin.get(nodes, AT_WORK))).toContain(`${metadata.uid}/`);
      expect(
        (await admin.get(pods, 'loss-held', { namespace: NAMESPACE })).metadata.deletionTimestamp,
      ).toBeDefined();
      expect(pendingOwner(await admin.get(nodes, TO_COME))).toBe(`Plan.${metadata.uid}`);
    });
    return { leader, held };
  }

  async function kill({ pid }: Process): Promise<string | undefined> {
    process.kill(pid, 'SIGKILL');
    return (await admin.get(leases, LEADER_LEASE.name, LEADER_LEASE)).spec?.holderIdentity;
  }

  async function expectNothingLeft(): Promise<void> {
    for (const name of [AT_WORK, TO_COME]) {
      const node = await admin.get(nodes, name);
      const { unschedulable, taints = [] } = node.spec ?? {};
      expect([name, unschedulable ?? false, cordonOwner(node), taints]).toEqual([
        name,
        false,
        undefined,
        [],
      ]);
    }
  }

  /** Reasons and messages of the Events on a Node. */
  async function toldOf(name: string): Promise<string> {
    const of = `--field-selector=involvedObject.kind=Node,involvedObject.name=${name}`;
    const columns = 'custom-columns=REASON:.reason,MESSAGE:.message';
    const args = ['get', 'events', '-A', of, '-o', columns];
    return (await kubectlAs('viewer', args)).stdout.replaceAll(/ +/g, ' ');
  }

  test('after a leader is killed in a drain, the next leader completes the plan and leaves no cordon or taint', async () => {
    const { leader, held } = await drainUnder('loss-first', NEXT);
    const killed = await kill(leader);
    expect(killed).toMatch(/./);
    const second = await cluster.startController('loss-second');
    await until(async () => {
      const { spec } = await admin.get(leases, LEADER_LEASE.name, LEADER_LEASE);
      expect([undefined, '', killed]).not.toContain(spec?.holderIdentity);
    });
    expect(cluster.hosts.map(({ starts }) => starts)).toEqual([1, 1]);
    await held();
    await until(async () =>
      expect((await admin.get(plans, 'autopilot')).status?.state).toBe('Completed'),
    );
    expect(await Promise.all(cluster.hosts.map(async (host) => await host.version()))).toEqual([
      NEXT,
      NEXT,
    ]);
    expect(cluster.hosts.map(({ starts }) => starts)).toEqual([2, 2]);
    await until(expectNothingLeft);
    await second.stop();
    await admin.delete(plans, 'autopilot');
  });

  test('its plan is deleted before the next leader: that one cancels the signal and removes cordon and taint', async () => {
    const { leader, held } = await drainUnder('loss-third', LAST);
    await kill(leader);
    await admin.delete(plans, 'autopilot');
    await cluster.startController('loss-fourth');
    await until(expectNothingLeft);
    const { metadata } = await admin.get(nodes, AT_WORK);
    expect(decodeSignal(metadata.annotations)?.status?.status).toBe('Failed');
    await until(async () => {
      const told = await toldOf(AT_WORK);
      expect(told).toContain('PlanGone its plan was deleted');
      expect(told).toContain('PlanGone Uncordoned: its plan was deleted');
    });
    expect(cluster.hosts.map(({ starts }) => starts)).toEqual([2, 2]);
    await held();
  });
});

test('a leader that comes back starts its deadlines again: it has not watched the node meanwhile', async () => {
  const admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  onTestFinished(() => admin.close());
  const policy = await admin.create(
    upgradePolicies,
    buildUpgradePolicy('loss', { deadlines: { answer: '10s' } }),
  );
  onTestFinished(async () => await admin.delete(upgradePolicies, policy.metadata.name));
  await using puppets = await Puppets.create(admin, 'loss-w1');
  const flags = ['--kubeconfig', await kubeconfigFor('controller'), '--lease-duration', '5s'];
  await using leader = new RefitProcess('controller', ...flags);
  await puppets.plan(1);
  await until(async () => expect(await puppets.signal('loss-w1')).toBeDefined());

  await until(async () => {
    const lease = await admin.get(leases, LEADER_LEASE.name, LEADER_LEASE);
    const spec = { ...lease.spec, holderIdentity: 'somebody', leaseDurationSeconds: 12 };
    await admin.replace(leases, { ...lease, spec });
  });
  await vi.waitFor(
    async () => {
      const { spec } = await admin.get(leases, LEADER_LEASE.name, LEADER_LEASE);
      expect(spec?.holderIdentity).not.toBe('somebody');
    },
    { ...PATIENCE, timeout: 150_000 },
  );
  await puppets.says('loss-w1', 'Downloading');
  await puppets.says('loss-w1', 'Completed');
  expect(await puppets.end()).toMatchObject({ state: 'Completed' });
  expect(await leader.stop('SIGTERM')).toBe(0);
});

test('a drain that its own node gives up after a change of leader ends the plan as the policy says', async () => {
  const admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  onTestFinished(() => admin.close());
  const policy = await admin.create(
    upgradePolicies,
    buildUpgradePolicy('loss-budget', { failureBudget: 5 }),
  );
  onTestFinished(async () => await admin.delete(upgradePolicies, policy.metadata.name));
  await using puppets = await Puppets.create(admin, 'loss-s1', 'loss-s2', 'loss-s3');
  await using leader = new RefitProcess(
    'controller',
    '--kubeconfig',
    await kubeconfigFor('controller'),
  );
  await puppets.plan(1);
  const fail = async (name: string, why: Omit<AgentReport, 'created'>): Promise<void> => {
    await until(async () => expect(await puppets.signal(name)).toBeDefined());
    const { created = '' } = (await puppets.signal(name)) ?? {};
    await puppets.says(name, 'Failed', encodeReport({ ...why, created }));
  };
  await fail('loss-s1', { reason: 'no socket' });
  await fail('loss-s2', { reason: 'the node was not drained within 11 min', late: 'drain' });
  const description = expect.stringContaining('the node was not drained within 11 min') as string;
  expect(await puppets.end()).toEqual({ state: 'ApplyFailed', description });
  expect(await puppets.recorded()).toMatchObject({ 'loss-s3': 'SignalPending' });
  expect(await puppets.signal('loss-s3')).toBeUndefined();
  expect(await leader.stop('SIGTERM')).toBe(0);
});
