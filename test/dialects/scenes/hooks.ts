/** Scenes with the hooks of a policy, which run at each moment of an upgrade. */
import { expect } from 'vitest';
import { namespaces } from '../../../src/kube/resources.ts';
import { HOOK_NAMESPACE, hookJob, type When } from '../hook-jobs.ts';
import type { World } from '../world.ts';
import { LONG_ENOUGH, type TableScene } from './scene.ts';

async function createNamespace(world: World): Promise<void> {
  await world.hooks.createNamespace();
}

/** The time at which the work on the node began, or was done. */
function timesOf(world: World, node: string) {
  const start = world.starts.find((each) => each.node === node)?.at ?? NaN;
  const end = world.truth.accepted.find((each) => each.node === node)?.at ?? NaN;
  return { start, end };
}

function ofNode(when: When, says: string): TableScene {
  return {
    name: `a hook ${says} runs once for each node, also if the leader dies`,
    features: [35],
    // The Job of a Plan of Rancher drains by itself, so there is no moment between drain and restart.
    setting: { leaderDrains: true },
    policy: { hooks: [hookJob(when)] },
    fields: ['hooks'],
    before: createNamespace,
    play: async (world) => {
      const [first] = world.dialect.nodes;
      const hasRun = (): boolean => world.hooks.seen.some(({ node }) => node === first);
      await world.until(`the hook of ${first} runs`, hasRun);
      await world.killLeader();
      await world.pass(2);
      await world.startLeader();
      await world.untilUpgraded(...world.dialect.nodes);
      await world.pass(LONG_ENOUGH);
      // The hook runs for the hosts of the control plane, too.
      const seen = world.hooks.seen.filter(({ node = '' }) => world.truth.hosts.has(node));
      expect(seen.map(({ node }) => node)).toEqual(world.dialect.nodes);
      for (const { node = '', at } of seen) {
        const { start, end } = timesOf(world, node);
        if (when === 'BeforeDrain') expect(at).toBeLessThanOrEqual(start);
        else if (when === 'AfterVerified') expect(at).toBeGreaterThanOrEqual(end);
        else expect(at).toBeLessThan(end);
      }
    },
  };
}

function ofPlan(when: 'BeforePlan' | 'AfterPlan', says: string): TableScene {
  return {
    name: `a hook ${says} runs once for each plan`,
    features: [35],
    policy: { hooks: [hookJob(when)] },
    fields: ['hooks'],
    before: createNamespace,
    play: async (world) => {
      await world.untilUpgraded(...world.dialect.nodes);
      await world.pass(LONG_ENOUGH);
      const plans = new Set(world.dialect.nodes.map((node) => world.dialect.planOf(node)));
      expect(world.hooks.seen.map(({ node }) => node)).toEqual([...plans].map(() => undefined));
    },
  };
}

export const HOOK_SCENES: readonly TableScene[] = [
  ofPlan('BeforePlan', 'before the plan'),
  ofNode('BeforeDrain', 'before the drain'),
  ofNode('AfterDrain', 'after the drain'),
  ofNode('BeforeRestart', 'before the restart'),
  ofNode('AfterVerified', 'after the upgrade'),
  ofPlan('AfterPlan', 'after the plan'),
  {
    name: 'a node is not upgraded if a hook before it fails',
    features: [35],
    policy: { hooks: [hookJob('BeforeDrain')] },
    fields: ['hooks'],
    before: async (world) => {
      await createNamespace(world);
      world.hooks.end = 'Failed';
    },
    play: async (world) => {
      const [first] = world.dialect.nodes;
      await world.until('a hook has run', () => world.hooks.seen.length > 0);
      await world.pass(LONG_ENOUGH);
      expect(world.started).toEqual([]);
      expect(world.isUpgraded(first)).toBe(false);
      expect(await world.refit('why', first)).toContain('backup');
    },
  },
  {
    name: 'a node waits while its hook cannot be created, and says so',
    features: [35],
    policy: { hooks: [hookJob('BeforeDrain')] },
    fields: ['hooks'],
    play: async (world) => {
      const [first] = world.dialect.nodes;
      await world.pass(LONG_ENOUGH);
      expect(world.started).toEqual([]);
      expect(await world.refit('why', first)).toContain(HOOK_NAMESPACE);
      const { items } = await world.stage.client.list(namespaces);
      expect(items.map(({ metadata }) => metadata.name)).not.toContain(HOOK_NAMESPACE);
      await createNamespace(world);
      await world.untilUpgraded(...world.dialect.nodes);
    },
  },
];
