/** Scenes in which people hold, stop and repeat an upgrade. */
import { expect } from 'vitest';
import { LONG_ENOUGH, type TableScene } from './scene.ts';

export const CONTROL_SCENES: readonly TableScene[] = [
  {
    name: 'all nodes are upgraded one at a time, and each of them once',
    features: [15, 32],
    play: async (world) => {
      await world.untilUpgraded(...world.dialect.nodes);
      await world.pass(LONG_ENOUGH);
      expect(world.started).toEqual(world.dialect.nodes);
      expect(await world.cordoned()).toEqual([]);
    },
  },
  {
    name: 'two nodes are upgraded at once if the plan allows two, and never three',
    features: [15],
    setting: { concurrent: 2 },
    play: async (world) => {
      const [first, second, third] = world.dialect.nodes;
      for (const node of world.dialect.nodes) world.crew.silent.add(node);
      await world.untilStarted(second);
      await world.pass(LONG_ENOUGH);
      expect(world.started).toEqual([first, second]);
      world.crew.silent.clear();
      await world.untilUpgraded(third);
    },
  },
  {
    name: 'a held node is not started, and starts once it is released',
    features: [10],
    before: async (world) => {
      await world.refit('hold', world.dialect.nodes[1], '--reason', 'its disk is replaced');
    },
    play: async (world) => {
      const [first, second] = world.dialect.nodes;
      await world.untilUpgraded(first);
      await world.pass(LONG_ENOUGH);
      expect(world.started).not.toContain(second);
      expect(await world.refit('why', second)).toContain('its disk is replaced');
      await world.refit('unhold', second);
      await world.untilUpgraded(...world.dialect.nodes);
    },
  },
  {
    name: 'a paused plan starts no further node, and goes on once it is resumed',
    features: [45],
    play: async (world) => {
      const [first] = world.dialect.nodes;
      const plan = world.dialect.planOf(first);
      world.crew.silent.add(first);
      await world.untilStarted(first);
      await world.refit('pause', '--plan', plan);
      world.crew.silent.clear();
      await world.untilUpgraded(first);
      await world.pass(LONG_ENOUGH);
      expect(world.started).toEqual([first]);
      await world.refit('resume', '--plan', plan);
      await world.untilUpgraded(...world.dialect.nodes);
    },
  },
  {
    name: 'a paused policy lets no node start, and a policy that is not paused lets them start',
    features: [45],
    policy: { paused: true },
    fields: ['paused'],
    play: async (world) => {
      await world.pass(LONG_ENOUGH);
      expect(world.started).toEqual([]);
      await world.setPolicy({});
      await world.untilUpgraded(...world.dialect.nodes);
    },
  },
  {
    name: 'an aborted plan starts no further node',
    features: [46],
    play: async (world) => {
      const [first] = world.dialect.nodes;
      world.crew.silent.add(first);
      await world.untilStarted(first);
      await world.refit('abort', '--plan', world.dialect.planOf(first), '--reason', 'bad release');
      world.crew.silent.clear();
      await world.pass(2 * LONG_ENOUGH);
      expect(world.started).toEqual([first]);
      expect(await world.refit('why')).toContain('bad release');
      expect(await world.cordoned()).toEqual([]);
    },
    instead: {
      'Cluster API': async (world) => {
        const [first] = world.dialect.nodes;
        world.crew.silent.add(first);
        await world.untilStarted(first);
        const plan = world.dialect.planOf(first);
        await world.refit('abort', '--plan', plan, '--reason', 'bad release');
        await world.pass(LONG_ENOUGH);
        expect(world.started).toEqual([first]);
        expect(await world.refit('why')).toContain('bad release');
      },
    },
  },
  {
    name: 'a failed node is tried again with refit retry, and the plan goes on',
    features: [],
    before: async (world) => {
      world.crew.failing.set(world.dialect.nodes[0], 'its disk is full');
      await Promise.resolve();
    },
    play: async (world) => {
      const [first] = world.dialect.nodes;
      await world.untilPhase(first, 'failed');
      await world.refit('retry', first);
      await world.untilUpgraded(...world.dialect.nodes);
      expect(world.started.filter((node) => node === first)).toHaveLength(2);
    },
    instead: {
      kubeadm: async (world) => {
        const [first] = world.dialect.nodes;
        await world.untilPhase(first, 'failed');
        expect(await world.refit('retry', first)).toContain('refit kubeadm apply');
        await world.dialect.deletePlan(world);
        await world.dialect.begin(world);
        await world.untilUpgraded(...world.dialect.nodes);
      },
    },
  },
  {
    name: 'all nodes go back to the earlier version when people roll back',
    features: [48],
    play: async (world) => {
      await world.untilUpgraded(...world.dialect.nodes);
      await world.pass(5);
      await world.dialect.rollBack(world);
      const { nodes, from } = world.dialect;
      const areBack = (): boolean => nodes.every((node) => world.truth.runs.get(node) === from);
      await world.until('all nodes run the earlier version', areBack);
    },
  },
];
