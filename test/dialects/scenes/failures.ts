/** Scenes in which nodes fail, are lost, join, or change without Refit, and in which the leader dies. */
import { expect } from 'vitest';
import { nodes } from '../../../src/kube/resources.ts';
import { report } from '../clusters/agents.ts';
import type { World } from '../world.ts';
import { LONG_ENOUGH, only, type TableScene } from './scene.ts';

function failOn(...places: readonly number[]) {
  return async (world: World): Promise<void> => {
    for (const place of places) {
      const node = world.dialect.nodes[place] ?? '';
      world.crew.failing.set(node, `the disk of ${node} is full`);
    }
    await Promise.resolve();
  };
}

/** Plays that the plan goes on after a node was deleted before its turn. */
async function goesOnWithoutLostNode(world: World): Promise<void> {
  const [first, second, third] = world.dialect.nodes;
  await world.untilStarted(first);
  await world.stage.client.delete(nodes, second);
  await world.untilUpgraded(first, third);
  expect(world.started).not.toContain(second);
}

/** Plays that a node which joins during the upgrade is upgraded, too. */
async function upgradesJoiner(world: World): Promise<void> {
  await world.untilStarted(world.dialect.nodes[0]);
  await world.dialect.join(world, 'joiner');
  await world.untilUpgraded('joiner');
}

export const FAILURE_SCENES: readonly TableScene[] = [
  {
    name: 'no further node starts after a failure',
    features: [],
    before: failOn(0),
    play: async (world) => {
      const [first] = world.dialect.nodes;
      await world.untilPhase(first, 'failed');
      await world.pass(LONG_ENOUGH);
      expect(world.started).toEqual([first]);
      expect(await world.refit('why')).toContain(first);
    },
  },
  {
    name: 'the plan goes on after as many failures as the policy allows, and not after more',
    features: [43],
    setting: { concurrent: 2 },
    policy: { failureBudget: 1 },
    fields: ['failureBudget'],
    before: failOn(0),
    play: async (world) => {
      const [first, second, third] = world.dialect.nodes;
      await world.untilPhase(first, 'failed');
      await world.untilUpgraded(second, third);
    },
  },
  {
    name: 'a failed node is tried again by itself as often as the policy says',
    features: [42],
    policy: { retry: { attempts: 2, backoff: '30s' } },
    fields: ['retry'],
    before: failOn(0),
    play: async (world) => {
      const [first] = world.dialect.nodes;
      await world.untilUpgraded(...world.dialect.nodes);
      expect(world.started.filter((node) => node === first)).toHaveLength(2);
    },
  },
  {
    name: 'a node that does not run the new version after its upgrade has failed',
    features: [23],
    policy: { deadlines: { ready: '2m' } },
    before: async (world) => {
      world.stuck.add(world.dialect.nodes[0]);
      await Promise.resolve();
    },
    play: async (world) => {
      const [first] = world.dialect.nodes;
      await world.untilPhase(first, 'failed');
      await world.pass(LONG_ENOUGH);
      expect(world.started).toEqual([first]);
      expect(world.isUpgraded(first)).toBe(false);
      expect(await world.refit('why')).toMatch(/another version|reports v/);
    },
  },
  {
    name: 'a pinned node stays at its version, and moves when the pin names the version of the plan',
    features: [12],
    fields: ['versions.pin'],
    before: async (world) => {
      const { nodes: names, from } = world.dialect;
      const pin = [{ selector: only(names[1]), version: from }];
      await world.setPolicy({ versions: { pin } });
    },
    play: async (world) => {
      const [first, second] = world.dialect.nodes;
      await world.untilUpgraded(first);
      await world.pass(LONG_ENOUGH);
      expect(world.started).not.toContain(second);
      expect(await world.refit('why', second)).toContain('pin');
      const pin = [{ selector: only(second), version: world.dialect.to }];
      await world.setPolicy({ versions: { pin } });
      await world.untilUpgraded(...world.dialect.nodes);
    },
  },
  {
    name: 'each node is upgraded once if the leader dies in the middle',
    features: [49],
    play: async (world) => {
      const [first] = world.dialect.nodes;
      await world.untilStarted(first);
      await world.killLeader();
      await world.pass(20);
      await world.startLeader();
      await world.untilUpgraded(...world.dialect.nodes);
      await world.pass(LONG_ENOUGH);
      const attempts = world.started.filter((node) => node === first).length;
      // The hosts of kubeadm lose their connection together with the leader, so the first one is begun again.
      expect(attempts).toBeLessThanOrEqual(world.dialect.name === 'kubeadm' ? 2 : 1);
      expect(new Set(world.started)).toEqual(new Set(world.dialect.nodes));
    },
  },
  {
    name: 'no node starts and none stays cordoned after the plan was deleted in the middle',
    features: [1],
    play: async (world) => {
      const [first] = world.dialect.nodes;
      await world.untilStarted(first);
      await world.pass(3);
      await world.dialect.deletePlan(world);
      await world.pass(2 * LONG_ENOUGH);
      expect(world.started).toEqual([first]);
      expect(await world.cordoned()).toEqual([]);
    },
  },
  {
    name: 'the other nodes are upgraded if a node is deleted before its turn',
    features: [11],
    policy: { goneNodes: 'Skip' },
    fields: ['goneNodes'],
    play: goesOnWithoutLostNode,
    instead: {
      // A Plan of Rancher upgrades the nodes that exist, so it needs no policy for this.
      'system-upgrade-controller': goesOnWithoutLostNode,
    },
  },
  {
    name: 'a node that joins is upgraded, too, if the policy includes joining nodes',
    features: [11],
    policy: { newNodes: 'Include' },
    fields: ['newNodes'],
    play: upgradesJoiner,
    instead: {
      // A Plan of Rancher upgrades every node that it selects, so it needs no policy for this.
      'system-upgrade-controller': upgradesJoiner,
    },
  },
  {
    name: 'a node that somebody has upgraded by hand is not told as upgraded from its earlier version',
    features: [73],
    play: async (world) => {
      const { nodes: names, to, from } = world.dialect;
      const [first, second] = names;
      await world.untilStarted(first);
      world.truth.install(second, to);
      await report(world, second, to);
      await world.untilUpgraded(...names);
      await world.pass(LONG_ENOUGH);
      const history = await world.refit('history');
      expect(history).not.toMatch(new RegExp(`${second}\\s+${RegExp.escape(from)}`));
    },
  },
];
