/** Scenes about what people are told: messages, the history, the report, and conditions. */
import { expect } from 'vitest';
import { nodeRollouts } from '../../../src/api/kinds.ts';
import type { World } from '../world.ts';
import { LONG_ENOUGH, type TableScene } from './scene.ts';

/** The versions before and after the upgrade, as Refit tells them: a kubelet may not report the build. */
function versionsOf({ dialect: { from, to } }: World) {
  // A Plan of Rancher may spell its version as the tag of an image, which has no plus.
  return { from: from.replace(/\.0$/, ''), to: new RegExp(to.replace('+', '[+-]')) };
}

export const TOLD_SCENES: readonly TableScene[] = [
  {
    name: 'people get one message when a plan starts, and one when it is done',
    features: [71],
    fields: ['notify'],
    play: async (world) => {
      await world.untilUpgraded(...world.dialect.nodes);
      await world.pass(LONG_ENOUGH);
      const plans = new Set(world.dialect.nodes.map((node) => world.dialect.planOf(node)));
      const { messages } = world.stage.journal;
      const told = (event: string): number =>
        messages.filter((line) => line.split(' ')[1] === `${event}:`).length;
      expect([told('Started'), told('Done')]).toEqual([plans.size, plans.size]);
    },
  },
  {
    name: 'the history and the report name each node with its versions before and after',
    features: [73],
    play: async (world) => {
      await world.untilUpgraded(...world.dialect.nodes);
      // By then, Kubernetes has deleted all Jobs.
      await world.pass(3 * LONG_ENOUGH);
      const { from, to } = versionsOf(world);
      for (const node of world.dialect.nodes) {
        const plan = world.dialect.planOf(node);
        const report = await world.refit('report', plan, '-o', 'markdown');
        const line = report.split('\n').find((each) => each.startsWith(`| ${node} |`));
        expect(line).toContain(from);
        expect(line).toMatch(to);
      }
      const history = await world.refit('history');
      expect(history).not.toContain('unknown');
      expect(history).toMatch(to);
    },
  },
  {
    name: 'the record of a plan that is done has the condition Completed, and counts all its nodes',
    features: [66],
    play: async (world) => {
      await world.untilUpgraded(...world.dialect.nodes);
      await world.pass(LONG_ENOUGH);
      const { items } = await world.stage.client.listAll(nodeRollouts);
      for (const { status } of items) {
        const completed = status?.conditions?.find(({ type }) => type === 'Completed');
        expect(completed?.status).toBe('True');
        const [done, all] = (status?.progress ?? '').split('/');
        expect(done).toBe(all);
      }
      const plans = new Set(world.dialect.nodes.map((node) => world.dialect.planOf(node)));
      expect(items).toHaveLength(plans.size);
    },
  },
  {
    name: 'a plan that waits for its window says so and when it ends',
    features: [78],
    policy: { windows: [{ days: ['Saturday'], start: '22:00', length: '4h', timeZone: 'UTC' }] },
    fields: ['windows'],
    play: async (world) => {
      await world.pass(LONG_ENOUGH);
      const why = await world.refit('why');
      expect(why).toContain('window');
      expect(why).toContain('2026-11-21');
    },
  },
  {
    name: 'the preview names the order of the nodes before the first one starts',
    features: [74],
    policy: { paused: true },
    play: async (world) => {
      await world.pass(LONG_ENOUGH);
      const preview = await world.refit('preview');
      const places = world.dialect.nodes.map((node) => preview.indexOf(node));
      expect(places.every((place) => place >= 0)).toBe(true);
      expect(places).toEqual(places.toSorted((a, b) => a - b));
    },
    instead: {
      // Cluster API chooses the next Machine, so nobody knows the order before it has chosen.
      'Cluster API': async (world) => {
        const [first] = world.dialect.nodes;
        await world.pass(LONG_ENOUGH);
        expect(await world.refit('preview')).toContain(first);
      },
    },
  },
];
