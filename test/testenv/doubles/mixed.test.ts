/** Tests that a plan ends when Refit and k0s share a cluster, whether Refit or k0s leads. */
import { expect, test } from 'vitest';
import { plans } from '../../../src/api/autopilot/plan.ts';
import { nodes } from '../../../src/kube/resources.ts';
import { COMBINATIONS, type Combination, startMixed } from '../../support/doubles/mixed.ts';

const HOSTS = ['controller1', 'worker1', 'worker2'];

const RELEASE = ['v1.36.3+k0s.0', 'v1.36.3+k0s.2'] as const;
/** Releases whose nodes cordon themselves, before and after the update. */
const OLD_RELEASE = ['v1.34.10+k0s.0', 'v1.34.11+k0s.0'] as const;

type Case = [name: string, from: string, to: string, combination: Combination];

test.each<Case>([
  ...Object.entries(COMBINATIONS).map(
    ([name, combination]): Case => [name, ...RELEASE, combination],
  ),
  ['our leader, agents of k0s <= 1.34', ...OLD_RELEASE, { leader: 'refit', agents: 'k0s' }],
  [
    'a Refit leader updates k0s from 1.34, whose agents cordon their node, to 1.35, whose agents do not',
    OLD_RELEASE[0],
    'v1.35.4+k0s.0',
    { leader: 'refit', agents: 'k0s' },
  ],
])(
  '%s: every node runs the new version and is schedulable',
  async (_name, from, to, combination) => {
    await using mixed = await startMixed({
      combination,
      controllers: 1,
      workers: 2,
      version: from,
      offers: [to],
    });
    const { client, hosts } = mixed.cluster;
    await client.create(plans, mixed.cluster.plan({ id: 'mixed', version: to, concurrent: 2 }));
    await mixed.until(async () => {
      const { status } = await client.get(plans, 'autopilot');
      expect(status?.state).toBe('Completed');
    });
    const { status } = await client.get(plans, 'autopilot');
    const { controllers = [], workers = [] } = status?.commands[0]?.k0supdate ?? {};
    expect(
      [...controllers, ...workers].map(({ name, state }) => `${name} ${state}`).toSorted(),
    ).toEqual(HOSTS.map((name) => `${name} SignalCompleted`));
    expect(await Promise.all(hosts.map(async (host) => await host.version()))).toEqual(
      HOSTS.map(() => to),
    );
    expect(hosts.map(({ starts }) => starts)).toEqual(HOSTS.map(() => 2));
    for (const name of ['worker1', 'worker2']) {
      expect((await client.get(nodes, name)).spec?.unschedulable).toBeUndefined();
    }
  },
);
