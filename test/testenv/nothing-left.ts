/** Fails a test file that leaves objects on its control plane, and removes them for the next file. */
import { afterAll, beforeAll, expect, vi } from 'vitest';
import { plans } from '../../src/api/autopilot/plan.ts';
import { machines } from '../../src/api/capi/machine.ts';
import { cattlePlans, upgradePolicies } from '../../src/api/kinds.ts';
import { statusShards } from '../../src/api/refit/status-shard.ts';
import { updaterSets } from '../../src/api/refit/updater-set.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import {
  clusterScoped,
  customResourceDefinitions,
  jobs,
  type Lease,
  leases,
  nodes,
  podDisruptionBudgets,
  pods,
  type Resource,
} from '../../src/kube/resources.ts';
import { isNotFound } from '../../src/kube/status-error.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { controlNodes } from '../../src/signal/names.ts';
import { kubeconfigFor } from './control-plane.ts';

/** Kinds whose leftovers would disturb the next file. */
const WATCHED: readonly Resource[] = [
  plans,
  cattlePlans,
  machines,
  upgradePolicies,
  updaterSets,
  statusShards,
  controlNodes,
  nodes,
  pods,
  jobs,
  podDisruptionBudgets,
  leases,
];

/** Each file may install the kinds of Refit and of the products whose plans it reads, and leaves them to the next one. */
const SHARED_GROUPS = ['upgrade.refit.dev', 'autopilot.k0sproject.io', 'upgrade.cattle.io'];

/** The namespaces of the control plane itself. The garbage collector deletes the Leases of Nodes after the Nodes. */
const PLANE_NAMESPACES = ['kube-system', 'kube-public', 'kube-node-lease'];

interface Left {
  readonly resource: Resource;
  readonly name: string;
  readonly namespace: string | undefined;
  /** True for a lease that nobody holds now. It is removed, and does not make the file fail. */
  readonly isFree: boolean;
}

interface Found {
  readonly objects: ReadonlySet<string>;
  readonly roles: readonly string[];
}

/**
 * The key in `globalThis` for the objects and roles that a file of this process found and left. The next file on the
 * same control plane finds them as well. A key in `globalThis` is needed because this module is loaded again for each
 * file.
 */
const KEY = Symbol.for('refit.test.found');
const holder = globalThis as typeof globalThis & { [KEY]?: Found | undefined };

let client: KubeClient;
let found: Found;

beforeAll(async () => {
  client = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  found = holder[KEY] ?? {
    objects: new Set((await listAll()).map(keyOf)),
    roles: await listRoles(),
  };
  holder[KEY] = undefined;
});

afterAll(async () => {
  let left: readonly Left[] = [];
  try {
    // Deletions take time: pods have their grace period, namespaces their content.
    await vi.waitFor(
      async () => {
        left = (await listAll()).filter((each) => !found.objects.has(keyOf(each)));
        expect(left.filter(({ isFree }) => !isFree).map(keyOf)).toEqual([]);
        expect(await definitionsThatGo()).toEqual([]);
      },
      { timeout: 150_000, interval: 500 },
    );
    const roles = await listRoles();
    expect(roles, 'a role is gone: see restoreRoles').toEqual(
      expect.arrayContaining([...found.roles]),
    );
    holder[KEY] = { ...found, roles };
  } finally {
    await remove(left);
    client.close();
  }
});

async function listAll(): Promise<Left[]> {
  const lists = WATCHED.map(async (resource) => {
    const { items } = await client.listAll(resource).catch((error: unknown) => {
      // No test has installed this kind yet, or one has removed it.
      if (isNotFound(error)) return { items: [] };
      throw error;
    });
    return items.map((item: Lease) => {
      const { name, namespace } = item.metadata;
      return { resource, name, namespace, isFree: resource === leases && isFree(item) };
    });
  });
  const all = [...(await Promise.all(lists)).flat(), ...(await definitionsOfOthers())];
  return all.filter(
    ({ namespace }) => namespace === undefined || !PLANE_NAMESPACES.includes(namespace),
  );
}

/**
 * Returns the definitions of kinds of other products. With them, the garbage collector begins to judge the owners of
 * the next file's objects, for example.
 */
async function definitionsOfOthers(): Promise<Left[]> {
  const { items } = await client.listAll(customResourceDefinitions);
  return items
    .map(({ metadata: { name } }) => name)
    .filter((name) => !SHARED_GROUPS.some((group) => name.endsWith(`.${group}`)))
    .map((name) => ({
      resource: customResourceDefinitions,
      name,
      namespace: undefined,
      isFree: false,
    }));
}

/**
 * Reports whether the lease has no holder or has expired. A process that ends on a busy machine may leave its lease to
 * expire, because one of its writes may still arrive.
 */
function isFree({
  spec: { holderIdentity, renewTime = '', leaseDurationSeconds = 0 } = {},
}: Lease): boolean {
  return !holderIdentity || Date.parse(renewTime) + leaseDurationSeconds * 1000 < Date.now();
}

async function remove(left: readonly Left[]): Promise<void> {
  for (const { resource, name, namespace } of left)
    await client.delete(resource, name, { namespace }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
}

/** Returns the documented roles and the bindings of these roles. */
async function listRoles(): Promise<string[]> {
  const kinds = ['Role', 'RoleBinding', 'ClusterRole', 'ClusterRoleBinding'];
  const lists = kinds.map(async (kind) => {
    const plural = `${kind.toLowerCase()}s`;
    const { items } = await client.listAll(
      clusterScoped('rbac.authorization.k8s.io/v1', kind, plural),
    );
    return items.map(({ metadata: { namespace, name } }) =>
      [plural, namespace, name].filter(Boolean).join(' '),
    );
  });
  return (await Promise.all(lists)).flat().filter((each) => each.includes('refit'));
}

/**
 * Returns the definitions that are being deleted. The next file could take such a definition for a definition that
 * stays.
 */
async function definitionsThatGo(): Promise<string[]> {
  const { items } = await client.listAll(customResourceDefinitions);
  return items
    .filter(({ metadata }) => metadata.deletionTimestamp !== undefined)
    .map(({ metadata }) => metadata.name);
}

const keyOf = ({ resource, name, namespace }: Left): string =>
  [resource.plural, resource.group, namespace, name].filter(Boolean).join(' ');
