/** Scenes about the limits and the choices of a policy that few people set. */
import { expect } from 'vitest';
import { nodes } from '../../../src/kube/resources.ts';
import { firstAlone, LONG_ENOUGH, type TableScene } from './scene.ts';

const ZONE = 'topology.kubernetes.io/zone';

export const LIMIT_SCENES: readonly TableScene[] = [
  {
    name: 'a policy for another plan has no effect',
    features: [],
    policy: { plans: [{ name: 'another' }], paused: true },
    fields: ['plans'],
    play: async (world) => await world.untilUpgraded(...world.dialect.nodes),
  },
  {
    name: 'the plan stops after as many failures in a row as the policy allows',
    features: [43],
    policy: { failureBudget: 3, maxConsecutiveFailures: 1 },
    fields: ['maxConsecutiveFailures'],
    setting: { concurrent: 2 },
    before: async (world) => {
      const [first, second, third] = world.dialect.nodes;
      for (const node of [first, second]) world.crew.failing.set(node, 'its disk is full');
      await world.refit('hold', third);
    },
    play: async (world) => {
      const [first, second, third] = world.dialect.nodes;
      await world.untilPhase(first, 'failed');
      await world.untilPhase(second, 'failed');
      await world.refit('unhold', third);
      await world.pass(LONG_ENOUGH);
      expect(world.started).not.toContain(third);
    },
  },
  {
    name: 'a failure within the budget of its wave does not stop the plan',
    features: [19, 43],
    // For Cluster API, a failed Machine uses up room.
    setting: { concurrent: 2 },
    policy: (dialect) => ({ waves: [{ ...firstAlone(dialect), failureBudget: 1 }, {}] }),
    fields: ['waves[].failureBudget'],
    before: async (world) => {
      world.crew.failing.set(world.dialect.nodes[0], 'its disk is full');
      await Promise.resolve();
    },
    play: async (world) => {
      const [first, second, third] = world.dialect.nodes;
      await world.untilPhase(first, 'failed');
      await world.untilUpgraded(second, third);
    },
  },
  {
    name: 'nodes of the next failure domain follow a node if the policy spreads them',
    features: [18],
    policy: { spread: ZONE },
    fields: ['spread'],
    before: async (world) => {
      const [first, second, third] = world.dialect.nodes;
      for (const node of [first, second]) await world.label(node, { [ZONE]: 'a' });
      await world.label(third, { [ZONE]: 'b' });
    },
    play: async (world) => {
      const [first, , third] = world.dialect.nodes;
      await world.until('two nodes have started', () => world.started.length >= 2);
      expect(world.started.slice(0, 2).toSorted()).toEqual([first, third]);
    },
  },
  {
    name: 'a node that does not answer fails at its deadline',
    features: [41],
    policy: { deadlines: { answer: '1m' } },
    fields: ['deadlines.answer'],
    before: async (world) => {
      world.crew.silent.add(world.dialect.nodes[0]);
      await Promise.resolve();
    },
    play: async (world) => {
      const [first] = world.dialect.nodes;
      await world.untilPhase(first, 'failed');
      await world.pass(LONG_ENOUGH);
      expect(world.started).toEqual([first]);
    },
  },
  {
    name: 'a node that makes no progress fails at the deadline for its whole upgrade',
    features: [41],
    policy: { deadlines: { target: '2m' } },
    fields: ['deadlines.target'],
    play: async (world) => {
      const [first] = world.dialect.nodes;
      await world.untilStarted(first);
      await world.pass(3);
      world.crew.silent.add(first);
      await world.untilPhase(first, 'failed');
      await world.pass(LONG_ENOUGH);
      expect(world.started).toEqual([first]);
    },
  },
  {
    name: 'a plan ends without its held worker if the policy says so',
    features: [],
    policy: { holds: 'Finish' },
    fields: ['holds'],
    before: async (world) => {
      await world.refit('hold', world.dialect.nodes[1], '--reason', 'its disk is replaced');
    },
    play: async (world) => {
      const [first, second, third] = world.dialect.nodes;
      await world.untilUpgraded(first, third);
      const isOver = async (): Promise<boolean> =>
        (await world.status()).plans.every(({ phase }) => phase === 'done');
      await world.until('the plan is done', isOver);
      expect(world.started).not.toContain(second);
    },
  },
  {
    name: 'the Nodes have the conditions of Kubernetes for maintenance while they are upgraded',
    features: [66],
    policy: { nodeConditions: true },
    fields: ['nodeConditions'],
    play: async (world) => {
      const [first] = world.dialect.nodes;
      const inProgress = async (): Promise<string | undefined> => {
        const { status } = await world.stage.client.get(nodes, first);
        return status?.conditions?.find(({ type }) => type === 'MaintenanceInProgress')?.status;
      };
      await world.until('the maintenance has begun', async () => (await inProgress()) === 'True');
      await world.untilUpgraded(...world.dialect.nodes);
      await world.pass(LONG_ENOUGH);
      expect(await inProgress()).not.toBe('True');
    },
  },
  {
    name: 'an unavailable Node without a kubelet counts if the policy says so',
    features: [17],
    policy: { maxUnavailable: 1, virtualNodes: 'Count' },
    fields: ['virtualNodes', 'maxUnavailable'],
    before: async ({ stage }) => {
      await stage.create(nodes, {
        apiVersion: 'v1',
        kind: 'Node',
        metadata: { name: 'virtual', labels: { type: 'virtual-kubelet' } },
        status: { conditions: [{ type: 'Ready', status: 'False' }] },
      });
    },
    play: async (world) => {
      await world.pass(LONG_ENOUGH);
      expect(world.started).toEqual([]);
      await world.setPolicy({ maxUnavailable: 1 });
      await world.untilUpgraded(...world.dialect.nodes);
    },
  },
];
