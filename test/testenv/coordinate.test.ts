/** Tests `coordinate` of a policy on a real API server: nodes wait for other tools. */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { plans } from '../../src/api/autopilot/plan.ts';
import { upgradePolicies } from '../../src/api/kinds.ts';
import type { ToolName } from '../../src/coordination/tool.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import {
  daemonSets,
  type KubeObject,
  type Lease,
  leases,
  namespaces,
} from '../../src/kube/resources.ts';
import { isAlreadyExists } from '../../src/kube/status-error.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { microTime } from '../../src/util/clock.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { installKinds, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { Puppets } from './puppets.ts';
import { RefitProcess, runRefit } from './refit-process.ts';

const POLICY = 'with-others';
const NO_LEASE: readonly ToolName[] = ['ClusterAutoscaler', 'Karpenter', 'Kured', 'GPUOperator'];
const LEASE = { namespace: 'refit-system', name: 'disruption' };

let admin: KubeClient;
let controller: RefitProcess;

beforeAll(async () => {
  await installKinds();
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  controller = await startController();
});
afterAll(async () => {
  expect(await controller.stop('SIGTERM')).toBe(0);
  admin.close();
});

async function startController(): Promise<RefitProcess> {
  const path = await kubeconfigFor('controller');
  return new RefitProcess('controller', '--kubeconfig', path, '--lease-duration', '5s');
}

async function applyPolicy(coordinate: readonly ToolName[] = NO_LEASE): Promise<void> {
  await admin.create(
    upgradePolicies,
    buildUpgradePolicy(POLICY, {
      plans: [{ dialect: 'autopilot' }],
      coordinate: [...coordinate],
    }),
  );
  onTestFinished(async () => await admin.delete(upgradePolicies, POLICY));
}

async function whyOf(node: string): Promise<string> {
  const path = await kubeconfigFor('operator');
  const { stdout } = await runRefit('why', node, '--kubeconfig', path);
  return stdout.join('\n').replaceAll(/\s+/g, ' ');
}

test('the API server refuses the name of an unknown tool', async () => {
  const unknown = buildUpgradePolicy(POLICY, { coordinate: ['Descheduler' as 'Kured'] });
  await expect(admin.create(upgradePolicies, unknown)).rejects.toThrow(
    /spec.coordinate\[0\]: Unsupported value: "Descheduler": supported values: .*"Karpenter"/,
  );
});

test('the autoscaler and Karpenter leave a node alone exactly while it is in progress', async () => {
  await using puppets = await Puppets.create(admin, 'coord-m1', 'coord-m2');
  await applyPolicy();
  const scale = 'cluster-autoscaler.kubernetes.io/scale-down-disabled';
  const disrupt = 'karpenter.sh/do-not-disrupt';
  await kubectlAs('admin', ['annotate', 'node', 'coord-m2', `${disrupt}=false`]);
  await puppets.plan(2);
  await puppets.says('coord-m1', 'Downloading');
  await puppets.says('coord-m2', 'Downloading');
  const annotationsOf = async (name: string) => (await puppets.node(name)).metadata.annotations;
  const own = 'upgrade.refit.dev/do-not-disrupt-by';
  const owner = expect.stringContaining('autopilot//autopilot/') as string;
  expect(await annotationsOf('coord-m1')).toMatchObject({
    [scale]: 'true',
    [disrupt]: 'true',
    [own]: owner,
  });
  expect(await annotationsOf('coord-m2')).toMatchObject({ [scale]: 'true', [disrupt]: 'false' });
  expect(await annotationsOf('coord-m2')).not.toHaveProperty([own]);

  await puppets.says('coord-m1', 'Completed');
  await puppets.until(async () => {
    expect(await annotationsOf('coord-m1')).not.toHaveProperty([scale]);
    expect(await annotationsOf('coord-m1')).not.toHaveProperty([disrupt]);
  });
  expect(await annotationsOf('coord-m2')).toHaveProperty([scale]);
  await admin.delete(plans, 'autopilot');
  await puppets.says('coord-m2', 'Completed');
  await puppets.until(async () => {
    expect(await annotationsOf('coord-m2')).not.toHaveProperty([scale]);
    expect(await annotationsOf('coord-m2')).toHaveProperty([disrupt], 'false');
  });
});

test('a plan goes on around nodes that other tools work on, and takes them up after that', async () => {
  await using puppets = await Puppets.create(admin, 'coord-w1', 'coord-w2', 'coord-w3');
  await applyPolicy();
  const state = 'nvidia.com/gpu-driver-upgrade-state';
  const taint = 'ToBeDeletedByClusterAutoscaler';
  await kubectlAs('admin', ['label', 'node', 'coord-w1', `${state}=drain-required`]);
  await kubectlAs('admin', ['taint', 'node', 'coord-w2', `${taint}=1:NoSchedule`]);
  await puppets.plan(1);
  await puppets.says('coord-w3', 'Completed');
  await puppets.until(async () => {
    expect(await whyOf('coord-w1')).toContain(
      `coord-w1: the GPU Operator is upgrading the driver of the node (label ${state}: drain-required)`,
    );
    expect(await whyOf('coord-w2')).toContain(
      `coord-w2: the cluster autoscaler is deleting the node (taint ${taint})`,
    );
  });
  expect(await puppets.signal('coord-w1')).toBeUndefined();
  expect(await puppets.signal('coord-w2')).toBeUndefined();

  await kubectlAs('admin', ['label', 'node', 'coord-w1', '--overwrite', `${state}=upgrade-done`]);
  await puppets.says('coord-w1', 'Completed');
  await kubectlAs('admin', ['taint', 'node', 'coord-w2', `${taint}-`]);
  await puppets.says('coord-w2', 'Completed');
  expect(await puppets.end()).toMatchObject({ state: 'Completed' });
});

const KURED_LOCK = 'weave.works/kured-node-lock';
const OURS = 'refit/autopilot/k0s-autopilot/k0s-autopilot-controller';

const lockFor = (nodeID: string) => ({
  nodeID,
  metadata: { unschedulable: false },
  created: '2026-01-01T00:00:00Z',
  TTL: 0,
});

/** Creates Kured's DaemonSet, without pods, and with a lock that Kured has written. */
async function createKured(lock: object, ...args: readonly string[]): Promise<void> {
  const labels = { app: 'kured' };
  await admin.create(daemonSets, {
    metadata: {
      name: 'kured',
      namespace: 'kube-system',
      annotations: { [KURED_LOCK]: JSON.stringify(lock) },
    },
    spec: {
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          nodeSelector: { none: 'x' },
          containers: [{ name: 'kured', image: 'kured', args }],
        },
      },
    },
  } as KubeObject);
  onTestFinished(async () => await admin.delete(daemonSets, 'kured', { namespace: 'kube-system' }));
}

/** The lock as Kured would read it; undefined if it is free. */
async function lockOfKured(): Promise<unknown> {
  const { metadata } = await admin.get(daemonSets, 'kured', { namespace: 'kube-system' });
  const text = metadata.annotations?.[KURED_LOCK];
  return text === undefined ? undefined : JSON.parse(text);
}

async function freeKured(): Promise<void> {
  const free = ['annotate', 'daemonset', 'kured', `${KURED_LOCK}-`];
  await kubectlAs('admin', ['-n', 'kube-system', ...free]);
}

/** The lock in Kured's format: its time is in RFC 3339, and its TTL is in nanoseconds. */
const LOCK_OF_REFIT = {
  nodeID: OURS,
  metadata: { unschedulable: false },
  created: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/) as string,
  TTL: 300_000_000_000,
};

test('Kured and Refit take turns by the lock of Kured, also when the leader is killed', async () => {
  await using puppets = await Puppets.create(admin, 'coord-k1', 'coord-k2');
  await applyPolicy();
  await createKured(lockFor('w9'));
  await puppets.plan(1);
  await puppets.until(async () => {
    const { stdout } = await kubectlAs('admin', ['get', 'noderollouts', '-A', '-o', 'json']);
    expect(stdout).toContain('Kured holds its lock for w9');
  });
  expect(await puppets.signal('coord-k1')).toBeUndefined();
  expect(await lockOfKured()).toEqual(lockFor('w9'));

  await freeKured();
  await puppets.says('coord-k1', 'Downloading');
  expect(await lockOfKured()).toEqual(LOCK_OF_REFIT);

  await controller.stop('SIGKILL');
  controller = await startController();
  await puppets.says('coord-k1', 'Completed');
  await puppets.says('coord-k2', 'Downloading');
  expect(await lockOfKured()).toEqual(LOCK_OF_REFIT);
  await puppets.says('coord-k2', 'Completed');
  expect(await puppets.end()).toMatchObject({ state: 'Completed' });
  await puppets.until(async () => expect(await lockOfKured()).toBeUndefined());
});

test('Refit takes all places of a Kured that reboots several nodes at once', async () => {
  await using puppets = await Puppets.create(admin, 'coord-p1');
  await applyPolicy();
  const held = { maxOwners: 2, locks: [lockFor('w9')] };
  await createKured(held, '--concurrency=2');
  await puppets.plan(1);
  await puppets.until(async () =>
    expect(await whyOf('coord-p1')).toContain('Kured holds its lock for w9'),
  );
  expect(await lockOfKured()).toEqual(held);

  await freeKured();
  await puppets.says('coord-p1', 'Downloading');
  expect(await lockOfKured()).toEqual({ maxOwners: 2, locks: [LOCK_OF_REFIT, LOCK_OF_REFIT] });
  await puppets.says('coord-p1', 'Completed');
  expect(await puppets.end()).toMatchObject({ state: 'Completed' });
  await puppets.until(async () => expect(await lockOfKured()).toBeUndefined());
});

async function holderOfLease(): Promise<string | undefined> {
  const { namespace, name } = LEASE;
  return (await admin.get<Lease>(leases, name, { namespace })).spec?.holderIdentity;
}

async function statusText(): Promise<string> {
  const { stdout } = await runRefit('status', '--kubeconfig', await kubeconfigFor('viewer'));
  return stdout.join('\n').replaceAll(/\s+/g, ' ');
}

test('tools take turns by the disruption Lease, also when the leader is killed', async () => {
  await using puppets = await Puppets.create(admin, 'coord-d1', 'coord-d2');
  await applyPolicy(['DisruptionLease']);
  const namespace = { metadata: { name: LEASE.namespace } };
  await admin.create(namespaces, namespace).catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error;
  });
  const at = microTime(Date.now());
  const spec = { holderIdentity: 'patcher', acquireTime: at, renewTime: at };
  await admin.create(leases, { metadata: LEASE, spec: { ...spec, leaseDurationSeconds: 3600 } });
  onTestFinished(async () => await admin.delete(leases, LEASE.name, LEASE));

  await puppets.plan(1);
  const held = `Lease refit-system/disruption is held by patcher since ${at}`;
  await puppets.until(async () => {
    expect(await whyOf('coord-d1')).toContain(held);
    expect(await statusText()).toContain(held);
    const { stdout } = await kubectlAs('admin', ['get', 'noderollouts', '-A', '-o', 'json']);
    expect(stdout).toContain(held);
  });
  expect(await puppets.signal('coord-d1')).toBeUndefined();

  const free = '{"spec":{"holderIdentity":""}}';
  const { namespace: where, name } = LEASE;
  await kubectlAs('admin', ['-n', where, 'patch', 'lease', name, '--type=merge', '-p', free]);
  await puppets.says('coord-d1', 'Downloading');
  expect(await holderOfLease()).toBe(OURS);

  await controller.stop('SIGKILL');
  controller = await startController();
  await puppets.says('coord-d1', 'Completed');
  await puppets.says('coord-d2', 'Downloading');
  expect(await holderOfLease()).toBe(OURS);
  await puppets.says('coord-d2', 'Completed');
  expect(await puppets.end()).toMatchObject({ state: 'Completed' });
  await puppets.until(async () => expect(await holderOfLease()).toBe(''));
});

test('a plan that is deleted gives the Lease back after its node has ended its work', async () => {
  await using puppets = await Puppets.create(admin, 'coord-o1');
  await applyPolicy(['DisruptionLease']);
  await puppets.plan(1);
  await puppets.says('coord-o1', 'Restart');
  onTestFinished(async () => await admin.delete(leases, LEASE.name, LEASE));
  expect(await holderOfLease()).toBe(OURS);
  const renewedAt = async () =>
    (await admin.get<Lease>(leases, LEASE.name, LEASE)).spec?.renewTime ?? '';
  await admin.delete(plans, 'autopilot');
  // If the Lease is old, the next check renews it, or releases it if no node needs it.
  const old = microTime(Date.now() - 120_000);
  const spec = { renewTime: old };
  await admin.patch(leases, LEASE.name, { spec }, { ...LEASE, type: 'merge' });
  await puppets.until(async () => expect(await renewedAt()).not.toBe(old));
  expect(await holderOfLease()).toBe(OURS);
  await puppets.says('coord-o1', 'Completed');
  await puppets.until(async () => expect(await holderOfLease()).toBe(''));
});
