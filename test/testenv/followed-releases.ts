/** The releases to which a cluster upgrades itself in a test, and what the cluster reports meanwhile. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import type { Cluster } from '../../sandbox/cluster/cluster.ts';
import { type Plan, plans } from '../../src/api/autopilot/plan.ts';
import type { UpdateConfig } from '../../src/api/autopilot/update-config.ts';
import { LEADER_LEASE } from '../../src/dialects/autopilot/leader-lease.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { events, leases, type Secret } from '../../src/kube/resources.ts';
import type { LogFields } from '../../src/util/log.ts';
import { PATIENCE } from './puppets.ts';

export const FROM = 'v1.36.3+k0s.0';
/** Two minor versions ahead of `FROM`. */
export const AHEAD = 'v1.38.1+k0s.0';
/** A release of the minor version between `FROM` and `AHEAD`. */
export const BETWEEN = 'v1.37.1+k0s.0';
export const RELEASES = [
  'v1.36.4+k0s.0',
  'v1.36.5+k0s.0',
  'v1.36.6+k0s.0',
  BETWEEN,
  AHEAD,
  'v1.38.2+k0s.0',
];
/** A release that `refit serve` offers. */
export const SERVED = 'v1.38.3+k0s.0';
/** A release that `refit serve` offers, and that it withdraws while nodes are being upgraded to it. */
export const UNWANTED = 'v1.38.4+k0s.0';
/** A release that is never installed, because it is withdrawn before the window opens. */
export const NEXT = 'v1.36.3+k0s.1';
export const ALWAYS: NonNullable<UpdateConfig['spec']['upgradeStrategy']> = {
  type: 'periodic',
  periodic: { days: [], startTime: '00:00', length: '24h' },
};
export const POLICY = {
  apiVersion: 'upgrade.refit.dev/v1alpha1',
  kind: 'UpgradePolicy',
  metadata: { name: 'much-room' },
};
export const EVERYTHING = {
  commands: [{ k0supdate: { targets: { controllers: all(), workers: all() } } }],
};

function all(): { discovery: { selector: Record<string, string> } } {
  return { discovery: { selector: {} } };
}

export function headersOf(raw: readonly string[]): Record<string, string> {
  const pairs = raw.flatMap((name, index) =>
    index % 2 === 0 && name.startsWith('K0s_') ? [[name, raw[index + 1] ?? '']] : [],
  );
  return Object.fromEntries(pairs) as Record<string, string>;
}

export async function reasonsOn(client: KubeClient, name: string): Promise<(string | undefined)[]> {
  const { items } = await client.listAll(events, {
    fieldSelector: `involvedObject.name=${name}`,
  });
  return items.map(({ reason }) => reason);
}

/** Returns the name of the process that leads, according to its log. Undefined if no process leads. */
export async function leaderAmong(
  cluster: Cluster,
  names: Iterable<string>,
): Promise<string | undefined> {
  const { name, namespace } = LEADER_LEASE;
  const { spec } = await cluster.client.get(leases, name, { namespace });
  const identity = spec?.holderIdentity ?? '';
  for (const each of names) {
    const log = await readFile(join(cluster.directory, 'logs', `${each}.log`), 'utf8');
    if (identity !== '' && log.includes(identity)) return each;
  }
  return undefined;
}

export const until = async (check: () => Promise<void>): Promise<void> =>
  await vi.waitFor(check, PATIENCE);

export async function isInstalled(cluster: Cluster, version: string): Promise<Plan> {
  await until(async () => {
    const { spec, status } = await cluster.client.get(plans, 'autopilot');
    expect([spec.commands[0]?.k0supdate?.version, status?.state]).toEqual([version, 'Completed']);
  });
  for (const host of cluster.hosts) expect(await host.version()).toBe(version);
  return await cluster.client.get(plans, 'autopilot');
}

/**
 * Returns the number of bytes that each download of a file transferred. On a busy machine an agent may send another
 * request and cancel it, or may already have the whole file. Such requests transfer no bytes and are left out.
 */
export function sizesSent(requests: readonly LogFields[]): unknown[] {
  const fetched = requests.filter(
    ({ path, method }) => String(path).startsWith('/files/') && method === 'GET',
  );
  return fetched.map(({ bytes }) => bytes).filter((sent) => sent !== 0);
}

/** Returns the Secret with the token of the update server. */
export function tokenSecret(token: string): Secret {
  return {
    metadata: { name: 'update-server-token' },
    data: { token: Buffer.from(token).toString('base64') },
  };
}
