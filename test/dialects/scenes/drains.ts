/** Scenes about the drain of nodes, where the leader drains them. */
import { expect } from 'vitest';
import { nodes, pods } from '../../../src/kube/resources.ts';
import { ifFound } from '../../../src/kube/status-error.ts';
import type { World } from '../world.ts';
import { LONG_ENOUGH, type TableScene } from './scene.ts';

const BUDGETS = {
  group: 'policy',
  version: 'v1',
  kind: 'PodDisruptionBudget',
  plural: 'poddisruptionbudgets',
  namespaced: true,
} as const;
const NAMESPACE = 'default';
/** The leader drains the nodes in every dialect. */
const BY_LEADER = { leaderDrains: true } as const;

interface PodOptions {
  /** True for a pod that nothing creates again. */
  readonly isBare?: boolean;
  readonly labels?: Readonly<Record<string, string>>;
  readonly hasEmptyDir?: boolean;
}

/** Creates a pod on the first node of the upgrade. */
async function createPod({ stage, dialect }: World, name: string, options: PodOptions = {}) {
  const { isBare = false, labels = { app: name }, hasEmptyDir = false } = options;
  const [nodeName] = dialect.nodes;
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name, uid: name, controller: true };
  await stage.create(pods, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: NAMESPACE,
      labels,
      ...(isBare ? {} : { ownerReferences: [owner] }),
    },
    spec: {
      nodeName,
      containers: [{ name: 'a', image: 'registry.example.com/a' }],
      ...(hasEmptyDir ? { volumes: [{ name: 'scratch', emptyDir: {} }] } : {}),
    },
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
  } as never);
}

/** Creates a budget that allows no disruption of the pod with this name. */
async function protect({ stage }: World, name: string): Promise<void> {
  await stage.create(BUDGETS, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name, namespace: NAMESPACE },
    spec: { minAvailable: 1, selector: { matchLabels: { app: name } } },
  } as never);
}

async function unprotect({ stage }: World, name: string): Promise<void> {
  await stage.client.delete(BUDGETS, name, { namespace: NAMESPACE });
}

async function isThere({ stage }: World, name: string): Promise<boolean> {
  return (await ifFound(stage.client.get(pods, name, { namespace: NAMESPACE }))) !== undefined;
}

/** Plays that the first node is not upgraded while its pod blocks the drain, and is upgraded once the pod is gone. */
async function isBlockedBy(world: World, pod: string): Promise<void> {
  const [first] = world.dialect.nodes;
  await world.pass(LONG_ENOUGH);
  expect(world.isUpgraded(first)).toBe(false);
  expect(await isThere(world, pod)).toBe(true);
  expect(await world.refit('why', first)).toContain(pod);
  await world.stage.client.delete(pods, pod, { namespace: NAMESPACE });
  await world.untilUpgraded(first);
}

/** A pod that a budget protects. The disruption controller has counted the pods of the budget. */
async function withProtectedPod(world: World): Promise<void> {
  await createPod(world, 'web');
  await protect(world, 'web');
  await world.pass(1);
}

export const DRAIN_SCENES: readonly TableScene[] = [
  {
    name: 'the pods of a node are evicted before its upgrade, and the node is uncordoned afterwards',
    features: [24],
    setting: BY_LEADER,
    before: async (world) => await createPod(world, 'web'),
    play: async (world) => {
      const [first] = world.dialect.nodes;
      await world.untilUpgraded(first);
      expect(await isThere(world, 'web')).toBe(false);
      await world.pass(LONG_ENOUGH);
      expect(await world.cordoned()).not.toContain(first);
    },
  },
  {
    name: 'a node waits for the budget of its pods, and goes on once the budget allows the eviction',
    features: [24],
    setting: BY_LEADER,
    before: withProtectedPod,
    play: async (world) => {
      const [first] = world.dialect.nodes;
      await world.pass(LONG_ENOUGH);
      expect(world.isUpgraded(first)).toBe(false);
      expect(await world.refit('why', first)).toContain('web');
      await unprotect(world, 'web');
      await world.untilUpgraded(first);
    },
  },
  {
    name: 'a node is neither cordoned nor drained if the policy says so',
    features: [],
    setting: BY_LEADER,
    policy: { drain: { enabled: false } },
    fields: ['drain.enabled'],
    before: withProtectedPod,
    play: async (world) => {
      const [first] = world.dialect.nodes;
      await world.untilUpgraded(first);
      expect(await isThere(world, 'web')).toBe(true);
    },
  },
  {
    name: 'a pod that nothing creates again blocks a drain without force',
    features: [],
    setting: BY_LEADER,
    policy: { drain: { force: false } },
    fields: ['drain.force'],
    before: async (world) => await createPod(world, 'shell', { isBare: true }),
    play: async (world) => await isBlockedBy(world, 'shell'),
  },
  {
    name: 'a pod with local data blocks a drain that must not lose it',
    features: [],
    setting: BY_LEADER,
    policy: { drain: { deleteEmptyDirData: false } },
    fields: ['drain.deleteEmptyDirData'],
    before: async (world) => await createPod(world, 'cache', { hasEmptyDir: true }),
    play: async (world) => await isBlockedBy(world, 'cache'),
  },
  {
    name: 'a pod that a rule skips stays on the node',
    features: [36],
    setting: BY_LEADER,
    policy: {
      drain: { pods: [{ selector: { matchLabels: { app: 'web' } }, behavior: 'Skip' }] },
    },
    fields: ['drain.pods'],
    before: withProtectedPod,
    play: async (world) => {
      const [first] = world.dialect.nodes;
      await world.untilUpgraded(first);
      expect(await isThere(world, 'web')).toBe(true);
    },
  },
  {
    name: 'a node is not cordoned before its budget allows the evictions, if the policy waits for it',
    features: [25],
    setting: BY_LEADER,
    policy: { drain: { zeroDisruptionBudgets: 'Wait' } },
    fields: ['drain.zeroDisruptionBudgets'],
    before: withProtectedPod,
    play: async (world) => {
      const [first] = world.dialect.nodes;
      await world.pass(LONG_ENOUGH);
      expect(await world.cordoned()).not.toContain(first);
      expect(await world.refit('why')).toContain('web');
      await unprotect(world, 'web');
      await world.untilUpgraded(first);
    },
  },
  {
    name: 'a node fails if its drain takes longer than its deadline',
    features: [41],
    setting: BY_LEADER,
    policy: { deadlines: { drain: '1m' } },
    fields: ['deadlines.drain'],
    before: withProtectedPod,
    play: async (world) => {
      const [first] = world.dialect.nodes;
      await world.untilPhase(first, 'failed');
      await world.pass(LONG_ENOUGH);
      expect(world.isUpgraded(first)).toBe(false);
      expect(await world.cordoned()).toEqual([]);
    },
  },
  {
    name: 'a node that cannot be drained is left out, and the others are upgraded',
    features: [44],
    setting: BY_LEADER,
    policy: {
      drain: { onDeadline: 'SkipNode' },
      maxBlockedNodes: 1,
      deadlines: { drain: '1m' },
    },
    // Only a plan that may leave nodes out has a limit for them.
    fields: ['maxBlockedNodes'],
    before: withProtectedPod,
    play: async (world) => {
      const [first, ...others] = world.dialect.nodes;
      await world.untilUpgraded(...others);
      await world.pass(LONG_ENOUGH);
      expect(world.isUpgraded(first)).toBe(false);
      expect(await world.cordoned()).toEqual([]);
    },
  },
  {
    name: 'nodes with the fewest pods of budgets start first if the policy says so',
    features: [18],
    setting: BY_LEADER,
    policy: { drain: { startWith: 'FewestBudgetPods' } },
    fields: ['drain.startWith'],
    before: withProtectedPod,
    play: async (world) => {
      const [first] = world.dialect.nodes;
      await world.until('a node has started', () => world.started.length > 0);
      expect(world.started[0]).not.toBe(first);
    },
  },
  {
    name: 'the drain waits for the pods of Jobs as long as the policy says',
    features: [36],
    setting: BY_LEADER,
    policy: { drain: { waitForJobs: '2m' } },
    fields: ['drain.waitForJobs'],
    before: async (world) => {
      await createPod(world, 'report');
      const job = { apiVersion: 'batch/v1', kind: 'Job', name: 'j', uid: 'j', controller: true };
      const metadata = { ownerReferences: [job] };
      const options = { type: 'merge', namespace: NAMESPACE } as const;
      await world.stage.client.patch(pods, 'report', { metadata }, options);
    },
    play: async (world) => {
      const [first] = world.dialect.nodes;
      await world.pass(60);
      expect(await isThere(world, 'report')).toBe(true);
      expect(world.isUpgraded(first)).toBe(false);
      await world.untilUpgraded(first);
      expect(await isThere(world, 'report')).toBe(false);
    },
  },
  {
    name: 'a node gets the label against load balancers while it is drained',
    features: [38],
    setting: BY_LEADER,
    policy: { drain: { loadBalancers: { exclude: true, grace: '10s' } } },
    fields: ['drain.loadBalancers'],
    before: withProtectedPod,
    play: async (world) => {
      const [first] = world.dialect.nodes;
      const isExcluded = async (): Promise<boolean> => {
        const { metadata } = await world.stage.client.get(nodes, first);
        return (
          metadata.labels?.['node.kubernetes.io/exclude-from-external-load-balancers'] !== undefined
        );
      };
      await world.until(`${first} is excluded`, isExcluded);
      await unprotect(world, 'web');
      await world.untilUpgraded(first);
      await world.until(`${first} is included again`, async () => !(await isExcluded()));
    },
  },
  {
    name: 'a cordon of somebody else stays after the upgrade',
    features: [39],
    setting: BY_LEADER,
    before: async ({ stage, dialect }) => {
      const unschedulable = { spec: { unschedulable: true } };
      await stage.client.patch(nodes, dialect.nodes[0], unschedulable, { type: 'merge' });
    },
    play: async (world) => {
      const [first] = world.dialect.nodes;
      await world.untilUpgraded(...world.dialect.nodes);
      await world.pass(LONG_ENOUGH);
      expect(await world.cordoned()).toEqual([first]);
    },
  },
  {
    name: 'a node that somebody cordoned is uncordoned, too, if the policy says so',
    features: [],
    policy: { drain: { uncordon: 'Always' } },
    fields: ['drain.uncordon'],
    before: async ({ stage, dialect }) => {
      const unschedulable = { spec: { unschedulable: true } };
      await stage.client.patch(nodes, dialect.nodes[0], unschedulable, { type: 'merge' });
    },
    play: async (world) => {
      await world.untilUpgraded(...world.dialect.nodes);
      await world.pass(LONG_ENOUGH);
      expect(await world.cordoned()).toEqual([]);
    },
  },
];
