/** Scenes in which a policy says when nodes may start: windows, waves, health checks and limits. */
import { expect } from 'vitest';
import type { UpgradePolicySpec } from '../../../src/api/refit/upgrade-policy.ts';
import { leases, namespaces, nodes } from '../../../src/kube/resources.ts';
import { ifFound } from '../../../src/kube/status-error.ts';
import { rfc3339 } from '../../../src/util/clock.ts';
import { parseVersion } from '../../../src/util/version.ts';
import { CHECKED, setHealth } from '../../scenes/k0s-scene.ts';
import type { World } from '../world.ts';
import { firstAlone, LONG_ENOUGH, type TableScene } from './scene.ts';

const MINUTE = 60_000;
const ZONE = 'topology.kubernetes.io/zone';
/** The scenes play on a Friday. */
const ON_SATURDAYS: UpgradePolicySpec = {
  windows: [{ days: ['Saturday'], start: '22:00', length: '4h', timeZone: 'UTC' }],
};

/** A window that closes some minutes after the upgrade has begun. */
function windowUntil(world: World, minutes: number): UpgradePolicySpec {
  const begin = new Date(world.stage.clock.now() + (minutes - 60) * MINUTE);
  const start = begin.toISOString().slice(11, 16);
  return { windows: [{ days: ['Friday'], start, length: '1h', timeZone: 'UTC' }] };
}

/** Sets or removes a feature gate that Kubernetes 1.36 lacks, as K3s shows it on the Node. */
async function setRemovedGate({ stage, dialect }: World, isSet: boolean): Promise<void> {
  const args = JSON.stringify(['agent', '--kubelet-arg=feature-gates=MemoryManager=true']);
  const annotations = { 'k3s.io/node-args': isSet ? args : null };
  const [first] = dialect.nodes;
  await stage.client.patch(nodes, first, { metadata: { annotations } }, { type: 'merge' });
}

/** Returns true if the API server is of a newer minor version than the plans of the scenes, which ask for 1.36. */
async function isServerNewer({ stage }: World): Promise<boolean> {
  const { body } = await stage.client.raw('/version');
  const { gitVersion } = JSON.parse(body) as { readonly gitVersion?: string };
  return (parseVersion(gitVersion)?.minor ?? 0) > 36;
}

/** Plays that nothing starts until the policy no longer forbids it. */
async function startsWithout(world: World): Promise<void> {
  await world.pass(LONG_ENOUGH);
  expect(world.started).toEqual([]);
  await world.setPolicy({});
  await world.untilUpgraded(...world.dialect.nodes);
}

async function inZones(world: World): Promise<void> {
  const [first, second, third] = world.dialect.nodes;
  for (const node of [first, second]) await world.label(node, { [ZONE]: 'a' });
  await world.label(third, { [ZONE]: 'b' });
}

export const GATE_SCENES: readonly TableScene[] = [
  {
    name: 'nothing starts outside of the windows',
    features: [51],
    policy: ON_SATURDAYS,
    fields: ['windows'],
    play: startsWithout,
  },
  {
    name: 'people can start a plan now, although its window is closed',
    features: [56],
    policy: ON_SATURDAYS,
    fields: ['windows'],
    play: async (world) => {
      const [first] = world.dialect.nodes;
      await world.pass(LONG_ENOUGH);
      const plan = world.dialect.planOf(first);
      await world.refit('start', '--plan', plan, '--now', '--for', '2h');
      await world.untilUpgraded(first);
    },
  },
  {
    name: 'no further node starts after the window has closed, and the present node finishes',
    features: [54],
    fields: ['windows'],
    before: async (world) => await world.setPolicy(windowUntil(world, 3)),
    play: async (world) => {
      const [first] = world.dialect.nodes;
      world.crew.silent.add(first);
      await world.untilStarted(first);
      await world.pass(180);
      world.crew.silent.clear();
      await world.untilUpgraded(first);
      await world.pass(LONG_ENOUGH);
      expect(world.started).toEqual([first]);
      await world.setPolicy({});
      await world.untilUpgraded(...world.dialect.nodes);
    },
  },
  {
    name: 'nothing starts during a blackout',
    features: [56],
    fields: ['blackouts'],
    before: async (world) => {
      const now = world.stage.clock.now();
      const blackout = { from: rfc3339(now - MINUTE), to: rfc3339(now + 60 * MINUTE) };
      await world.setPolicy({ blackouts: [blackout] });
    },
    play: async (world) => {
      await world.pass(5);
      expect(await world.refit('why')).toContain('blackout');
      await startsWithout(world);
    },
  },
  {
    name: 'the second wave starts after its approval',
    features: [19],
    policy: (dialect) => ({ waves: [firstAlone(dialect), { approval: 'Manual' }] }),
    fields: ['waves', 'waves[].approval'],
    play: async (world) => {
      const [first, second, third] = world.dialect.nodes;
      await world.untilUpgraded(first);
      await world.pass(LONG_ENOUGH);
      expect(world.started).toEqual([first]);
      await world.refit('approve', world.dialect.planOf(second), '--wave', '2');
      await world.untilUpgraded(second);
      await world.untilUpgraded(third);
    },
  },
  {
    name: 'the second wave starts after the settle time of the first, also if all Jobs are gone',
    features: [20],
    policy: (dialect) => ({ waves: [{ ...firstAlone(dialect), settle: '4m' }, {}] }),
    fields: ['waves[].settle'],
    play: async (world) => {
      const [first, second] = world.dialect.nodes;
      await world.untilUpgraded(first);
      await world.pass(100);
      await world.killLeader();
      await world.startLeader();
      await world.pass(100);
      expect(world.started).toEqual([first]);
      await world.untilUpgraded(second);
    },
  },
  {
    name: 'a node settles before the next one starts',
    features: [20],
    policy: { settle: '2m' },
    fields: ['settle'],
    play: async (world) => {
      const [first, second] = world.dialect.nodes;
      await world.untilUpgraded(first);
      await world.pass(90);
      expect(world.started).toEqual([first]);
      await world.untilStarted(second);
    },
  },
  {
    name: 'no node starts while a health check fails',
    features: [26],
    policy: CHECKED,
    fields: ['health'],
    before: async (world) => await setHealth(world.stage, 'bad'),
    play: async (world) => {
      await world.pass(LONG_ENOUGH);
      expect(world.started).toEqual([]);
      expect(await world.refit('why')).toMatch(/health check shop .* fails: /);
      await setHealth(world.stage, 'good');
      await world.untilUpgraded(...world.dialect.nodes);
    },
  },
  {
    name: 'people can accept a failing health check',
    features: [26],
    policy: CHECKED,
    fields: ['health'],
    before: async (world) => await setHealth(world.stage, 'bad'),
    play: async (world) => {
      const [first] = world.dialect.nodes;
      await world.pass(LONG_ENOUGH);
      const plan = world.dialect.planOf(first);
      await world.refit('accept', '--plan', plan, '--check', 'shop', '--reason', 'known');
      await world.untilStarted(first);
    },
  },
  {
    name: 'no node starts while the cluster is not ready for the version',
    features: [],
    policy: { versions: { requireReady: true } },
    fields: ['versions.requireReady'],
    before: async (world) => await setRemovedGate(world, true),
    play: async (world) => {
      await world.pass(LONG_ENOUGH);
      expect(world.started).toEqual([]);
      expect(await world.refit('why')).toContain('feature gate MemoryManager');
      await setRemovedGate(world, false);
      // A test may choose a real API server that is newer than the version of the plan. Then the cluster stays unready.
      if (await isServerNewer(world)) {
        await world.pass(LONG_ENOUGH);
        expect(await world.refit('why')).toMatch(/it would go from \S+ down to/);
        expect(world.started).toEqual([]);
        return;
      }
      const [first, ...others] = world.dialect.nodes;
      await world.untilStarted(first);
      // Once the first node has started, the cluster is on its way, and its readiness counts no more.
      await setRemovedGate(world, true);
      await world.untilUpgraded(first, ...others);
    },
  },
  {
    name: 'people can accept that the cluster is not ready for the version',
    features: [],
    policy: { versions: { requireReady: true } },
    fields: ['versions.requireReady'],
    before: async (world) => await setRemovedGate(world, true),
    play: async (world) => {
      const [first] = world.dialect.nodes;
      await world.pass(LONG_ENOUGH);
      const plan = world.dialect.planOf(first);
      await world.refit('accept', '--plan', plan, '--check', 'ready', '--reason', 'known');
      await world.untilUpgraded(...world.dialect.nodes);
    },
  },
  {
    name: 'a node fails if a health check still fails when its deadline after the upgrade is over',
    features: [26, 41],
    policy: { ...CHECKED, deadlines: { ready: '1m' } },
    fields: ['health', 'deadlines.ready'],
    before: async (world) => await setHealth(world.stage, 'good'),
    play: async (world) => {
      const [first] = world.dialect.nodes;
      await world.untilStarted(first);
      await setHealth(world.stage, 'bad');
      await world.untilPhase(first, 'failed');
      await world.pass(LONG_ENOUGH);
      expect(world.started).toEqual([first]);
    },
  },
  {
    name: 'never more nodes are unavailable than the policy allows',
    features: [16, 17],
    setting: { concurrent: 2 },
    policy: { maxUnavailable: 1 },
    fields: ['maxUnavailable'],
    play: async (world) => {
      const [first, second] = world.dialect.nodes;
      world.crew.silent.add(first);
      await world.untilStarted(first);
      await world.pass(LONG_ENOUGH);
      expect(world.started).toEqual([first]);
      world.crew.silent.clear();
      await world.untilStarted(second);
    },
  },
  {
    name: 'two nodes of one failure domain are not upgraded at once',
    features: [18],
    setting: { concurrent: 3 },
    policy: { perDomain: { label: ZONE, maxUnavailable: 1 } },
    fields: ['perDomain'],
    before: inZones,
    play: async (world) => {
      const [first, second, third] = world.dialect.nodes;
      for (const node of world.dialect.nodes) world.crew.silent.add(node);
      await world.untilStarted(third);
      await world.pass(LONG_ENOUGH);
      expect(world.started.toSorted()).toEqual([first, third]);
      world.crew.silent.clear();
      await world.untilUpgraded(second);
    },
  },
  {
    name: 'the order of the policy decides which node is upgraded first',
    features: [18],
    policy: ({ nodes: [, , third] }) => ({ order: [`kubernetes.io/hostname=${third}`] }),
    fields: ['order'],
    play: async (world) => {
      const [, , third] = world.dialect.nodes;
      await world.untilUpgraded(...world.dialect.nodes);
      expect(world.started[0]).toBe(third);
    },
  },
  {
    name: 'no node starts while another tool holds the Lease for disruptions',
    features: [21],
    policy: { coordinate: ['DisruptionLease'] },
    fields: ['coordinate'],
    before: async (world) => {
      const { stage } = world;
      const held = await ifFound(stage.client.get(namespaces, 'refit-system'));
      if (!held) await stage.create(namespaces, { metadata: { name: 'refit-system' } });
      const now = rfc3339(stage.clock.now()).replace('Z', '.000000Z');
      await stage.create(leases, {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name: 'disruption', namespace: 'refit-system' },
        spec: {
          holderIdentity: 'another-tool',
          leaseDurationSeconds: 3600,
          acquireTime: now,
          renewTime: now,
        },
      });
    },
    play: async (world) => {
      await world.pass(LONG_ENOUGH);
      expect(world.started).toEqual([]);
      await world.stage.client.delete(leases, 'disruption', { namespace: 'refit-system' });
      await world.untilUpgraded(...world.dialect.nodes);
    },
  },
];
