/**
 * Reads what decisions need, with lists or informers: plans, the objects that belong to them, policies, and the leader.
 * Finds the installed dialects.
 */

import { upgradePolicies } from '../../api/kinds.ts';
import type { UpgradePolicy } from '../../api/refit/upgrade-policy.ts';
import type { Dialect } from '../../engine/contract/dialect.ts';
import { plansAmong } from '../../engine/contract/plan-objects.ts';
import type { Watched, World } from '../../engine/contract/world.ts';
import { listPolicies } from '../../engine/policy/choose-policy.ts';
import { freshWorld, NOTHING, OwnWrites, type View, viewsOf } from '../../engine/snapshot/world.ts';
import type { KubeClient, Reading, Selection } from '../../kube/client.ts';
import { holderOf } from '../../kube/election/lease-record.ts';
import { type KubeObject, keyAt, keyOf, type Lease, leases } from '../../kube/resources.ts';
import { ifAllowed, ifFound, isForbidden } from '../../kube/status-error.ts';
import { withoutManagedFields } from '../../kube/trimmed.ts';
import { tryList } from '../../kube/try-list.ts';
import { createInformer } from '../../kube/watch/informer.ts';
import { rfc3339 } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import { printable } from '../../util/printable.ts';
import type { LeaseName } from '../contract/session-dialect.ts';

export interface Loaded {
  readonly dialect: Dialect;
  plans(): readonly KubeObject[];
  readonly world: World;
}

const same = (object: KubeObject): KubeObject => object;

/** Lists once what the informers of a dialect would store. Like an informer, it trims the objects page by page to save memory. */
export async function loadOnce(
  client: KubeClient,
  dialect: Dialect,
  abort: AbortSignal,
): Promise<Loaded> {
  return await load(
    { client, abort },
    dialect,
    async ({ resource, namespace, fieldSelector, labelSelector, transform: shrink = same }) => {
      const { items, metadata } = await client.listAll(resource, {
        abort,
        namespace,
        fieldSelector,
        labelSelector,
        transform: (object) => shrink(withoutManagedFields(object)),
      });
      const byKey = new Map(items.map((object) => [keyOf(object), object]));
      return {
        list: () => items,
        get: (name, namespace) => byKey.get(keyAt(name, namespace)),
        resourceVersion: () => metadata.resourceVersion,
      };
    },
  );
}

/**
 * Watches the objects of a dialect. Calls `onChange` after every relevant change, until the `abort` of the reading
 * fires.
 */
export async function follow(
  { client, abort }: Reading,
  dialect: Dialect,
  onChange: () => void,
): Promise<Loaded> {
  return await load({ client, abort }, dialect, async (followed) => {
    const { resource, namespace, fieldSelector, labelSelector } = followed;
    const selection = { namespace, fieldSelector, labelSelector, transform: followed.transform };
    // A list comes first, because it fails at once if the kind is missing. An informer would wait for the kind.
    await tryList(client, resource, { namespace, fieldSelector, abort });
    const informer = createInformer(client, resource, selection);
    void informer.run(abort);
    // The code does not wait for an advisory informer. It may never sync, because a user may have the right to list
    // pods but no right to watch them.
    if (followed.advisory !== true) await informer.whenSynced(abort);
    const updated = (after: KubeObject, before: KubeObject): void => {
      if (followed.isRelevant(before, after)) onChange();
    };
    informer.addHandler({ added: onChange, updated, deleted: onChange });
    return informer;
  });
}

type Scope = Pick<Selection, 'namespace' | 'fieldSelector'>;

type ViewOf = (followed: Watched & Scope) => Promise<View<KubeObject>>;

async function load(reading: Reading, dialect: Dialect, view: ViewOf): Promise<Loaded> {
  const { plans: resource, planObjects: { namespace, fieldSelector } = {} } = dialect;
  const plans = { resource, namespace, fieldSelector, isRelevant: () => true };
  // The plans are read first, so that the other objects are not older than the plans. A leader writes the other objects before the plans.
  const own = await view(plans);
  const others = await Promise.all(
    dialect.watched.map(async (followed) => {
      if (followed.resource === resource) return [resource, own] as const;
      const isThere = followed.optional !== true || (await isReadable(reading, followed.resource));
      const found = isThere ? await ifFound(view(followed)) : undefined;
      return [followed.resource, found ?? NOTHING] as const;
    }),
  );
  return {
    dialect,
    plans: () => plansAmong(dialect, own.list()),
    world: freshWorld(viewsOf(others), new OwnWrites()),
  };
}

/** Returns false if the cluster does not have the kind, or if the user may not list it. */
async function isReadable(
  reading: Reading,
  resource: Watched['resource'],
  scope: Scope = {},
): Promise<boolean> {
  const asked = tryList(reading.client, resource, { ...scope, abort: reading.abort });
  return (await ifFound(ifAllowed(asked))) === true;
}

/**
 * Returns the dialects whose kinds the cluster serves. If the cluster serves no such kind, returns all dialects, so
 * that the error names what is missing.
 */
export async function installedOf(
  reading: Reading,
  dialects: readonly Dialect[],
): Promise<readonly Dialect[]> {
  const { client, abort } = reading;
  const isServed = await Promise.all(
    dialects.map(async ({ plans, planObjects }) => {
      if (plans.group === '') return await isReadable(reading, plans, planObjects);
      const { status, body } = await client.raw(`/apis/${plans.group}/${plans.version}`, { abort });
      return status === 200 ? body.includes(`"name":"${plans.plural}"`) : status !== 404;
    }),
  );
  const served = dialects.filter((_dialect, index) => isServed[index]);
  // Every API server serves the core group. So if all served dialects have their plans in that group, only the dialects
  // that have plans are returned.
  if (served.some(({ plans }) => plans.group !== '')) return served;
  const plans = await Promise.all(
    served.map(async (each) => (await loadOnce(client, each, abort)).plans()),
  );
  const used = served.filter((_dialect, index) => plans[index]?.length !== 0);
  return used.length > 0 ? used : dialects;
}

export interface Policies {
  list(): readonly UpgradePolicy[];
  /**
   * The reason why the policies cannot be read. Undefined if they were read, or if the cluster does not have the kind.
   */
  readonly unseen?: string;
  /** The names of the policies that come from a file. Such a policy may be missing in the cluster. */
  readonly fromFiles?: ReadonlySet<string>;
}

const NO_POLICIES: Policies = { list: () => [] };

/** Lists the policies. Returns no policies if the cluster does not have the kind or the user may not read it. */
export async function loadPolicies({ client, abort }: Reading): Promise<Policies> {
  try {
    const items = await listPolicies(client, abort);
    return items ? { list: () => items } : NO_POLICIES;
  } catch (error) {
    if (isForbidden(error)) return { list: () => [], unseen: `policies: ${messageOf(error)}` };
    throw error;
  }
}

/**
 * Watches the policies. `first` is the result of `loadPolicies`. If the cluster does not have the kind, or if the user
 * may not read the policies, nothing is watched, and the result is `first`.
 */
export async function followPolicies(
  reading: Reading,
  first: Policies,
  onChange: () => void,
): Promise<Policies> {
  if (first === NO_POLICIES || first.unseen !== undefined) return first;
  const informer = createInformer(reading.client, upgradePolicies);
  void informer.run(reading.abort);
  await informer.whenSynced(reading.abort);
  informer.addHandler({ added: onChange, updated: onChange, deleted: onChange });
  return { list: () => informer.list() };
}

/** Returns the policies that the cluster would have after `kubectl apply` of the policies in the files. */
export function asIfApplied(policies: Policies, fromFiles: readonly UpgradePolicy[]): Policies {
  // If several policies have the same name, the last one counts, as with `kubectl apply`.
  const applied = new Map(fromFiles.map((policy) => [policy.metadata.name, policy]));
  const list = (): readonly UpgradePolicy[] => [
    ...policies.list().filter(({ metadata }) => !applied.has(metadata.name)),
    ...applied.values(),
  ];
  return { ...policies, list, fromFiles: new Set(applied.keys()) };
}

export type LeaderView =
  | { readonly state: 'unknown' }
  /**
   * No process holds the lease. `since` is the RFC 3339 time at which the lease was released; absent if no process has
   * ever held the lease.
   */
  | { readonly state: 'none'; readonly since?: string }
  /**
   * A process has acquired the lease. `since` is an RFC 3339 time: the time of the acquisition, or the time of the last
   * renewal if the lease has expired. `late` means that the lease expired so recently that different clocks may be the
   * cause. `silent` means that it expired earlier than that.
   */
  | { readonly state: 'held' | 'late' | 'silent'; readonly holder: string; readonly since: string };

/** The maximum difference between the clock of this machine and the clock of the leader, in milliseconds. */
const CLOCK_TOLERANCE_MS = 30_000;

/** A connection, and the Lease of the leader; undefined if no dialect of the session has a known Lease. */
export interface LeaderReading extends Reading {
  readonly lease: LeaseName | undefined;
}

/**
 * Reads the lease. Returns the state `unknown` if the lease has no known name or the user may not read it, so that the
 * command can still show everything else.
 */
export async function askLeader(
  { client, abort, lease: place }: LeaderReading,
  now: number,
): Promise<LeaderView> {
  if (place === undefined) return { state: 'unknown' };
  const { name, namespace } = place;
  const found = ifFound(client.get(leases, name, { namespace, abort }));
  return (await ifAllowed(found.then((lease) => leaderOf(lease, now)))) ?? { state: 'unknown' };
}

/**
 * Watches the lease. `first` is the result of `askLeader`. Returns a function that returns the leader at the time
 * `now`. Until the lease is loaded, that function returns `first`. If the state of `first` is `unknown`, nothing is
 * watched.
 */
export function followLeader(
  { client, abort, lease: place }: LeaderReading,
  first: LeaderView,
): (now: number) => LeaderView {
  if (place === undefined || first.state === 'unknown') return () => first;
  const { name, namespace } = place;
  const informer = createInformer(client, leases, {
    namespace,
    fieldSelector: `metadata.name=${name}`,
  });
  void informer.run(abort);
  return (now) => (informer.synced() ? leaderOf(informer.get(name, namespace), now) : first);
}

export function leaderOf(lease: Lease | undefined, now: number): LeaderView {
  const holder = lease ? printable(holderOf(lease)) : '';
  const { renewTime = '', leaseDurationSeconds = 0, acquireTime = '' } = lease?.spec ?? {};
  if (holder === '')
    return { state: 'none', ...(renewTime === '' ? {} : { since: toSecond(renewTime) }) };
  const end = Date.parse(renewTime) + leaseDurationSeconds * 1000;
  if (now > end)
    return {
      state: now > end + CLOCK_TOLERANCE_MS ? 'silent' : 'late',
      holder,
      since: toSecond(renewTime),
    };
  return { state: 'held', holder, since: toSecond(acquireTime) };
}

/** Milliseconds in which a controller that was just started acquires the lease. */
const START_MS = 5000;

/**
 * Returns the leader to show in a watch that has run for `watchedMs` milliseconds. At the start of the watch, a missing leader counts as
 * unknown, because a controller may also be starting.
 */
export function settled(leader: LeaderView, watchedMs: number): LeaderView {
  return leader.state === 'none' && watchedMs < START_MS ? { state: 'unknown' } : leader;
}

/** Rounds a time of a Lease to seconds. A Lease stores microseconds, but all other times of the output are in seconds. */
function toSecond(time: string): string {
  const milliseconds = Date.parse(time);
  return Number.isNaN(milliseconds) ? time : rfc3339(milliseconds);
}
