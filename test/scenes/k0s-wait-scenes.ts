/** Scenes with Plans of k0s that wait for something that a policy, an agent, a node or another tool demands. */
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import { leases, namespaces, nodes, pods } from '../../src/kube/resources.ts';
import type { AgentPresence } from '../../src/signal/agent-presence.ts';
import { listed } from '../support/builders/plans.ts';
import { k0sControllerWithout } from './k0s.ts';
import {
  announce,
  createBudget,
  failingAfter,
  label,
  makeNotReady,
  NOT_FOUND,
  ONE_BY_ONE,
  replacePlan,
  k0sScene as scene,
  stuckAt,
  UPDATE,
} from './k0s-scene.ts';
import type { Scene } from './scene.ts';
import type { Stage } from './stage.ts';

const ZONE = 'topology.kubernetes.io/zone';
const W1 = { matchLabels: { 'kubernetes.io/hostname': 'w1' } };

/** A scene in which w1 waits from the beginning. */
function waiting(
  name: string,
  policy: UpgradePolicySpec,
  before?: (stage: Stage) => Promise<void>,
) {
  return scene(name, {
    policy,
    ...(before ? { before } : {}),
    play: async (stage) => await stage.wait(60),
    about: ['w1', 'w2'],
  });
}

/** A scene in which the agent of w1 announces something. */
function announcing(name: string, more: Partial<AgentPresence>, policy?: UpgradePolicySpec): Scene {
  return scene(name, {
    ...(policy ? { policy } : {}),
    before: async (stage) => await announce(stage, 'w1', more),
    play: async (stage) => await stage.wait(60),
    about: ['w1', 'w2'],
  });
}

async function taint(stage: Stage, node: string, key: string): Promise<void> {
  const taints = [{ key, effect: 'NoSchedule' }];
  await stage.client.patch(nodes, node, { spec: { taints } }, { type: 'merge' });
}

/** A pod on w1 that nothing creates again. */
async function createBarePod(stage: Stage): Promise<void> {
  const metadata = { name: 'shell', namespace: 'default' };
  const containers = [{ name: 'a', image: 'registry.example.com/a' }];
  const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata,
    spec: { nodeName: 'w1', containers },
    status,
  };
  await stage.create(pods, pod as never);
}

async function createLease(
  stage: Stage,
  namespace: string,
  name: string,
  holderIdentity: string,
): Promise<void> {
  const renewTime = '2026-11-20T08:00:00.000000Z';
  const spec = { holderIdentity, leaseDurationSeconds: 3600, acquireTime: renewTime, renewTime };
  const lease = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace },
  };
  await stage.create(leases, { ...lease, spec });
}

/** Creates the Lease of a controller manager that never renews it. */
async function createManagerLease(stage: Stage): Promise<void> {
  await createLease(stage, 'kube-system', 'kube-controller-manager', 'c1_1');
}

export const K0S_WAIT_SCENES: readonly Scene[] = [
  waiting('a worker is pinned', {
    versions: { pin: [{ selector: W1, version: 'v1.36.3+k0s.0' }] },
  }),
  waiting('two pins contradict each other', {
    versions: {
      pin: [
        { selector: W1, version: 'v1.36.3+k0s.0' },
        { selector: W1, version: 'v1.35.1+k0s.0' },
      ],
    },
  }),
  waiting('a pinned worker is left out at the end', {
    holds: 'Finish',
    versions: { pin: [{ selector: W1, version: 'v1.36.3+k0s.0' }] },
  }),
  waiting('a blackout', { blackouts: [{ from: '2026-11-20', to: '2026-11-21' }] }),
  waiting('the window of another time zone is closed', {
    windows: [{ days: ['Saturday'], start: '22:00', length: '4h', timeZone: 'Europe/Berlin' }],
  }),
  scene('a blackout is left once', {
    policy: { blackouts: [{ from: '2026-11-20', to: '2026-11-21' }] },
    play: async (stage) => {
      await stage.wait(10);
      await stage.refit('start', '--now', '--for', '2h', '--blackouts', '--reason', 'urgent fix');
      await stage.wait(20);
    },
  }),
  waiting(
    'too many nodes are unavailable',
    { maxUnavailable: 1 },
    async (stage) => await makeNotReady(stage, 'w2'),
  ),
  waiting(
    'too many nodes of a zone are unavailable',
    { perDomain: { label: ZONE, maxUnavailable: 1 } },
    async (stage) => {
      await label(stage, 'w1', { [ZONE]: 'a' });
      await label(stage, 'w2', { [ZONE]: 'a' });
      await makeNotReady(stage, 'w2');
    },
  ),
  scene('workers start in the order of a label', {
    policy: { order: ['pool=canary'] },
    before: async (stage) => await label(stage, 'w2', { pool: 'canary' }),
    next: stuckAt('w2', 'Downloading'),
    play: async (stage) => await stage.wait(60),
    about: ['w1', 'w2'],
  }),
  scene('a slot is kept for a while after a worker', {
    policy: { settle: '10m' },
    play: async (stage) => await stage.wait(90),
    about: ['w1', 'w2'],
  }),
  scene('a wave settles', {
    policy: { waves: [{ selector: W1, settle: '1h' }, {}] },
    play: async (stage) => await stage.wait(90),
    about: ['w1', 'w2'],
  }),
  scene('a plan pauses because of a failure', {
    policy: { onFailure: 'Pause' },
    next: failingAfter('w1', 'Downloading', 'FailedDownload', NOT_FOUND),
    play: async (stage) => await stage.wait(90),
    about: ['w1', 'w2'],
  }),
  scene('a failed worker waits for its next attempt', {
    policy: { retry: { attempts: 3, backoff: '10m' } },
    next: failingAfter('w1', 'Downloading', 'FailedDownload', NOT_FOUND),
    play: async (stage) => await stage.wait(90),
    about: ['w1', 'w2'],
  }),
  announcing(
    'a worker has the agent of k0s, and the policy requires the agent of Refit',
    { aside: true },
    {
      agents: { require: 'Refit' },
    },
  ),
  announcing('an agent does not know which agent acts', {
    doubt: '/var/lib/k0s/worker-profile.yaml has changed since k0s was started',
  }),
  announcing('an agent excludes its node', { excluded: true }),
  scene('a host cannot run the version', {
    update: { ...UPDATE, version: 'v1.37.0+k0s.0' },
    before: async (stage) => await announce(stage, 'w1', { cgroupV1: 'refused' }),
    play: async (stage) => await stage.wait(60),
    about: ['w1', 'w2'],
  }),
  scene('the policy requires a sha256', {
    policy: { payloads: { requireSha256: true } },
    update: { ...UPDATE, platforms: { 'linux-amd64': { url: 'https://example.com/k0s' } } },
    play: async (stage) => await stage.wait(30),
  }),
  scene('the policy requires https', {
    policy: { payloads: { requireHttps: true } },
    update: {
      ...UPDATE,
      platforms: { 'linux-amd64': { url: 'http://example.com/k0s', sha256: 'ab'.repeat(32) } },
    },
    play: async (stage) => await stage.wait(30),
  }),
  scene('the plan skips a minor version', {
    update: { ...UPDATE, version: 'v1.38.0+k0s.0' },
    play: async (stage) => await stage.wait(30),
  }),
  scene('the plan would put an older version on its nodes', {
    update: { ...UPDATE, version: 'v1.35.1+k0s.0' },
    play: async (stage) => await stage.wait(30),
  }),
  scene('workers would be newer than the API servers', {
    update: { version: 'v1.37.0+k0s.0', targets: { workers: ONE_BY_ONE } },
    play: async (stage) => await stage.wait(30),
    about: ['w1'],
  }),
  scene('a worker would be too old for the API servers', {
    update: { version: 'v1.37.0+k0s.0', targets: { controllers: listed('c1') } },
    before: async (stage) => {
      const status = { nodeInfo: { kubeletVersion: 'v1.33.1+k0s' } };
      await stage.client.patch(nodes, 'w2', { status }, { type: 'merge', subresource: 'status' });
    },
    play: async (stage) => await stage.wait(30),
    about: ['c1', 'w2'],
  }),
  scene('the version of a worker is unknown', {
    before: async (stage) => {
      const status = { nodeInfo: { kubeletVersion: 'unknown' } };
      await stage.client.patch(nodes, 'w2', { status }, { type: 'merge', subresource: 'status' });
    },
    play: async (stage) => await stage.wait(30),
    about: ['w2'],
  }),
  scene('the labels of a worker do not tell its platform', {
    before: async (stage) => await label(stage, 'w2', { 'kubernetes.io/arch': null }),
    play: async (stage) => await stage.wait(30),
    about: ['w2'],
  }),
  scene('the API server of another controller is not ready', {
    hosts: [3, 1],
    update: { targets: { controllers: listed('c1', 'c2', 'c3'), workers: listed('w1') } },
    leader: k0sControllerWithout(3),
    play: async (stage) => await stage.wait(60),
    about: ['c1', 'w1'],
  }),
  scene('an API server is not ready, and the policy ends the plan', {
    hosts: [3, 1],
    policy: { controllersNotReady: 'End' },
    update: { targets: { controllers: listed('c1', 'c2', 'c3'), workers: listed('w1') } },
    leader: k0sControllerWithout(3),
    play: async (stage) => await stage.wait(60),
    about: ['c1', 'w1'],
  }),
  scene('the controller manager does not work', {
    before: async (stage) => await createManagerLease(stage),
    play: async (stage) => await stage.wait(120),
    about: ['c1', 'w1'],
  }),
  scene('the controller manager stops during the upgrade of a controller', {
    policy: { deadlines: { ready: '60s' } },
    play: async (stage) => {
      await stage.wait(8);
      await createManagerLease(stage);
      await stage.wait(180);
    },
    about: ['c1', 'w1'],
  }),
  scene('rolled back although the controller manager does not work', {
    policy: { deadlines: { ready: '60s' } },
    play: async (stage) => {
      await stage.wait(8);
      await createManagerLease(stage);
      await stage.wait(120);
      await stage.refit('rollback', 'autopilot', '--reason', 'no manager', '--yes');
      await stage.wait(20);
    },
    about: ['c1', 'w1'],
  }),
  scene('another plan still works on a worker', {
    hosts: [1, 3],
    next: stuckAt('w1', 'Restart'),
    play: async (stage) => {
      await stage.wait(60);
      const workers = { ...listed('w2', 'w3'), limits: { concurrent: 1 } };
      await replacePlan(stage, { targets: { workers } }, 'id2');
      await stage.wait(20);
    },
    about: ['w1', 'w2'],
  }),
  waiting(
    'Karpenter removes a worker',
    { coordinate: ['Karpenter'] },
    async (stage) => await taint(stage, 'w1', 'karpenter.sh/disrupted'),
  ),
  waiting(
    'the cluster autoscaler deletes a worker',
    { coordinate: ['ClusterAutoscaler'] },
    async (stage) => await taint(stage, 'w1', 'ToBeDeletedByClusterAutoscaler'),
  ),
  waiting(
    'the GPU Operator upgrades the driver of a worker',
    { coordinate: ['GPUOperator'] },
    async (stage) =>
      await label(stage, 'w1', { 'nvidia.com/gpu-driver-upgrade-state': 'pod-restart-required' }),
  ),
  waiting(
    'another tool holds the Lease for disruptions',
    { coordinate: ['DisruptionLease'] },
    async (stage) => {
      await stage.create(namespaces, { metadata: { name: 'refit-system' } });
      await createLease(stage, 'refit-system', 'disruption', 'node-rebooter');
    },
  ),
  waiting(
    'a policy allows no pod without a controller to be evicted',
    { drain: { force: false } },
    createBarePod,
  ),
  waiting(
    'a policy waits for a budget before it cordons',
    { drain: { zeroDisruptionBudgets: 'Wait' } },
    createBudget,
  ),
  scene('a drain takes too long, and the policy leaves the worker out', {
    policy: { drain: { onDeadline: 'SkipNode' }, deadlines: { drain: '1m' } },
    before: createBudget,
    play: async (stage) => await stage.wait(180),
    about: ['w1', 'w2'],
  }),
  scene('a drain takes too long, and the plan stops', {
    policy: { deadlines: { drain: '1m' } },
    before: createBudget,
    play: async (stage) => await stage.wait(180),
    about: ['w1', 'w2'],
  }),
];
