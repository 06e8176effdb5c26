/**
 * Reads and writes the lock of Kured. Kured holds it while it drains and reboots a node, and Refit holds it while nodes are in
 * progress. It is an annotation of Kured's DaemonSet: one lock, or a list of locks if Kured runs with `--concurrency`.
 */
import { daemonSets, type KubeObject, keyOf } from '../kube/resources.ts';
import { ifFound, isForbidden } from '../kube/status-error.ts';
import { rfc3339 } from '../util/clock.ts';
import { ifPossible } from '../util/errors.ts';
import { defined, isRecord } from '../util/json.ts';
import { ownMember } from '../util/own-member.ts';
import { printable } from '../util/printable.ts';
import { scalarText } from '../util/scalar-text.ts';
import {
  concurrencyOf,
  DEFAULT_PLACE,
  isKured,
  type LockPlace,
  lockPlaceOf,
  MOST_AT_ONCE,
} from './kured-concurrency.ts';
import type { LockClient, LockKind, LockView, Look, OtherLock } from './tool.ts';

const NANOSECONDS = 1_000_000;

/**
 * Milliseconds after which Kured takes the lock if no process of Refit renews it. A change of the leader of Refit takes
 * less time.
 */
const LASTS_MS = 300_000;
const RENEW_MS = 60_000;

export const kuredLock: LockKind = {
  tool: 'Kured',
  title: 'the lock of Kured',
  place: 'the DaemonSets of all namespaces, among which Refit finds Kured',
  taking: {
    rights: '`refit install rights coordinate-kured`',
    renewMs: RENEW_MS,
    lastsMs: LASTS_MS,
  },
  async look(client, look) {
    const found = await findKured(client, look);
    // Without Kured there is no lock, so Refit need not take it, and nobody else can hold it.
    if (found.length === 0) return { others: [], renewedAt: look.now, notFound: NOT_FOUND };
    const views = await viewsAt(client, found, look);
    const [only] = views;
    if (only && views.length === 1) return only;
    // A part that was just taken must be released, whether or not the check has been aborted meanwhile.
    const { abort: _abort, ...again } = look;
    return asOne(views, async () => await viewsAt(client, await findKured(client, again), again));
  },
};

const DEFAULT_KEY = `${DEFAULT_PLACE.namespace}/${DEFAULT_PLACE.name}`;

const NOT_FOUND =
  'Kured is in `coordinate` of the policy, but no DaemonSet of the cluster runs it, so nothing waits for Kured. If it runs, its container must have the command `kured` or an image with this name';

/**
 * Returns the DaemonSets that run Kured. If Refit may not list the DaemonSets of all namespaces, it looks only in the
 * default place. If there is no DaemonSet, it is unknown whether Kured runs elsewhere, so the promise rejects.
 */
async function findKured(client: LockClient, { abort }: Look): Promise<KubeObject[]> {
  try {
    const { items } = await client.listAll(daemonSets, defined({ abort }));
    return items.filter((each) => isKured(each) || keyOf(each) === DEFAULT_KEY);
  } catch (error) {
    if (!isForbidden(error)) throw error;
    const { name, namespace } = DEFAULT_PLACE;
    const kured = await ifFound(client.get(daemonSets, name, { namespace, abort }));
    if (kured) return [kured];
    throw error;
  }
}

/**
 * Returns one DaemonSet for each lock. Several DaemonSets can share a lock, for example one for each architecture. Refit
 * must hold as many places of such a lock as the DaemonSet uses that reboots the most nodes at once.
 */
function onePerLock(found: readonly KubeObject[]): KubeObject[] {
  const keyOfLock = (kured: KubeObject): string => {
    const place = lockPlaceOf(kured);
    return Object.values(place).includes('') ? `of ${keyOf(kured)}` : JSON.stringify(place);
  };
  // An unknown number could be any number.
  const placesOf = (kured: KubeObject): number => concurrencyOf(kured) ?? Number.MAX_SAFE_INTEGER;
  return [...Map.groupBy(found, keyOfLock).values()].flatMap(
    (group) => group.toSorted((a, b) => placesOf(b) - placesOf(a))[0] ?? [],
  );
}

async function viewsAt(
  client: LockClient,
  found: readonly KubeObject[],
  look: Look,
): Promise<LockView[]> {
  return await Promise.all(
    onePerLock(found).map(async (kured) => await viewAt(client, kured, look)),
  );
}

/** Returns the lock of one Kured. Its annotation may be on another DaemonSet than the one that runs Kured. */
async function viewAt(client: LockClient, kured: KubeObject, look: Look): Promise<LockView> {
  const place = lockPlaceOf(kured);
  if (Object.values(place).includes('')) {
    const message = `the DaemonSet ${keyOf(kured)} does not show where Kured keeps its lock`;
    const ends = '--ds-namespace, --ds-name and --lock-annotation are in its args';
    return { others: [{ tool: 'Kured', message, ends }] };
  }
  const { name, namespace } = place;
  const isHere = keyOf(kured) === `${namespace}/${name}`;
  const locked = isHere
    ? kured
    : await ifFound(client.get(daemonSets, name, { namespace, abort: look.abort }));
  if (locked) return viewOf(client, { kured, locked, place }, look);
  const message = `Kured of the DaemonSet ${keyOf(kured)} keeps its lock on ${titleOf(place)}, which does not exist`;
  const ends = '--ds-namespace and --ds-name of Kured name its DaemonSet';
  return { others: [{ tool: 'Kured', message, ends }] };
}

/**
 * Returns several locks as one lock, which Refit holds only if it holds all of them. If `take` cannot take all of them, it
 * releases those that it has just taken, because a part would only prevent reboots. It never releases a lock that Refit
 * held before: nodes may be down under this lock. `lookAgain` resolves with the locks as they are after a write.
 */
function asOne(views: readonly LockView[], lookAgain: () => Promise<LockView[]>): LockView {
  const held = views.filter(({ renewedAt }) => renewedAt !== undefined);
  const renewedAt = Math.min(...held.map((view) => view.renewedAt ?? 0));
  const isWhole = held.length === views.length;
  const takeAll = async (all: readonly LockView[]): Promise<void> => {
    for (const view of all) await view.take?.();
  };
  return {
    others: views.flatMap(({ others }) => others),
    renewedAt: isWhole ? renewedAt : undefined,
    ...(!isWhole &&
      held.length > 0 && { part: { renewedAt, renew: async () => await takeAll(held) } }),
    async take() {
      try {
        await takeAll(views);
      } catch (error) {
        const after = await lookAgain().catch(() => []);
        // If the locks are others than before, nobody knows which of them this call has taken.
        const taken =
          after.length === views.length ? after.filter((_, at) => isNew(views[at])) : [];
        await releaseAll(taken).catch(() => undefined);
        throw error;
      }
    },
    giveBack: async () => await releaseAll(views),
  };
}

/** Returns true if Refit did not hold the lock when it looked. */
function isNew(view: LockView | undefined): boolean {
  return view?.renewedAt === undefined;
}

/** Releases the locks that Refit holds. If one lock cannot be released, the others are released nevertheless. */
async function releaseAll(views: readonly LockView[]): Promise<void> {
  const held = views.filter(({ renewedAt }) => renewedAt !== undefined);
  const results = await Promise.allSettled(held.map(async (view) => await view.giveBack?.()));
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

function titleOf({ namespace, name }: LockPlace): string {
  return `the DaemonSet ${namespace}/${name}`;
}

interface Found {
  /** The DaemonSet that runs Kured. */
  readonly kured: KubeObject;
  /** The DaemonSet that has the annotation. */
  readonly locked: KubeObject;
  readonly place: LockPlace;
}

/** One lock in the format of Kured. Refit keeps fields that it does not know. */
type Entry = Readonly<Record<string, unknown>>;

interface Value {
  /** True if the value is a list. With `--concurrency`, Kured ignores a single lock, and overwrites it. */
  readonly isList: boolean;
  readonly entries: readonly Entry[];
}

/**
 * The entries of a value that are still valid: all entries of Refit, even expired ones, and the entries of others that
 * have not expired.
 */
interface Entries extends Value {
  readonly own: readonly Entry[];
  readonly foreign: readonly Entry[];
  /** The number of nodes that Kured reboots at once, each with a lock of its own. Refit needs all these locks. */
  readonly places: number;
}

function viewOf(client: LockClient, { kured, locked, place }: Found, look: Look): LockView {
  const text = ownMember(locked.metadata.annotations, place.annotation);
  const value = text === undefined ? { isList: false, entries: [] } : valueIn(text);
  // A value that cannot be read counts as a lock of somebody else. Kured does not reboot a node either while it cannot
  // read the value.
  if (!value) return { others: [heldFor('an unknown node', place)] };
  const concurrency = concurrencyOf(kured);
  const isOwn = ({ nodeID }: Entry): boolean => typeof nodeID === 'string' && look.isOwn(nodeID);
  const entries: Entries = {
    ...value,
    own: value.entries.filter(isOwn),
    foreign: value.entries.filter((entry) => !isOwn(entry) && expiryOf(entry) > look.now),
    places: concurrency ?? Math.max(1, value.entries.length),
  };
  const write = async (next: object | null): Promise<void> => {
    const { name, namespace, annotation } = place;
    const annotations = { [annotation]: next && JSON.stringify(next) };
    const patch = { metadata: { resourceVersion: locked.metadata.resourceVersion, annotations } };
    await client.patch(daemonSets, name, patch, { namespace, type: 'merge' });
  };
  return {
    others: [
      ...entries.foreign.map((entry) => lockIn(entry, place)),
      ...(concurrency === undefined ? [unknownConcurrency(kured)] : []),
    ],
    renewedAt: renewalOf(entries),
    take: async () => await write(takenFrom(entries, look)),
    giveBack: async () => await write(withoutOwn(entries)),
  };
}

/** Returns the locks of an annotation; undefined if the annotation has no valid format. */
function valueIn(text: string): Value | undefined {
  const value = ifPossible((): unknown => JSON.parse(text));
  if (!isRecord(value)) return undefined;
  if (!('maxOwners' in value)) return { isList: false, entries: [value] };
  // Go writes an empty list as null.
  const locks: unknown[] = Array.isArray(value['locks']) ? value['locks'] : [];
  return { isList: true, entries: locks.map((each) => (isRecord(each) ? each : {})) };
}

/**
 * Returns the time at which Refit renewed its lock. Returns the Unix epoch if Refit holds a lock but Kured could still
 * take a lock, so that Refit writes its lock again at once.
 */
function renewalOf({ isList, entries, own, foreign, places }: Entries): number | undefined {
  if (own.length === 0) return undefined;
  const live = own.length + foreign.length;
  const isComplete = isList && live === entries.length && live >= places;
  const isWhole = places > 1 || foreign.length > 0 ? isComplete : !isList;
  const times = own.map(({ created }) => Date.parse(scalarText(created)) || 0);
  return isWhole ? Math.min(...times) : 0;
}

/** Returns the value in which Refit holds all locks that others do not hold. */
function takenFrom({ foreign, places }: Entries, { holder, now }: Look): object {
  const own = {
    nodeID: holder,
    metadata: { unschedulable: false },
    created: rfc3339(now),
    // Without a TTL, the lock would expire after `--lock-ttl` of Kured, or never.
    TTL: LASTS_MS * NANOSECONDS,
  };
  if (places === 1 && foreign.length === 0) return own;
  const free = Math.max(1, places - foreign.length);
  return { maxOwners: places, locks: [...foreign, ...Array.from({ length: free }, () => own)] };
}

function withoutOwn({ foreign, places }: Entries): object | null {
  return foreign.length === 0 ? null : { maxOwners: places, locks: foreign };
}

/** Returns when the lock expires, in milliseconds since the Unix epoch. The result is Infinity for a lock without a TTL. */
function expiryOf({ created, TTL }: Entry): number {
  const lasts = typeof TTL === 'number' && TTL > 0 ? TTL / NANOSECONDS : Infinity;
  const expiry = Date.parse(scalarText(created)) + lasts;
  return Number.isFinite(expiry) ? expiry : Infinity;
}

function lockIn(entry: Entry, place: LockPlace): OtherLock {
  const { nodeID } = entry;
  const holder = typeof nodeID === 'string' ? printable(nodeID) : 'an unknown node';
  const expiry = expiryOf(entry);
  const until = expiry === Infinity ? {} : { until: rfc3339(expiry) };
  // The name of a node has no slash, and the holder that Refit writes has one.
  return { ...(holder.includes('/') ? heldBy(holder) : heldFor(holder, place)), ...until };
}

function heldFor(node: string, { namespace, name, annotation }: LockPlace): OtherLock {
  const command = `kubectl -n ${namespace} annotate daemonset ${name} ${annotation}-`;
  return {
    tool: 'Kured',
    message: `Kured holds its lock for ${node}`,
    ends: `Kured has rebooted ${node} and releases the lock, or, if Kured is gone, somebody runs ${command}`,
  };
}

function heldBy(holder: string): OtherLock {
  return {
    tool: 'Kured',
    message: `the lock of Kured is held by ${holder}`,
    ends: `${holder} releases the lock`,
  };
}

function unknownConcurrency(kured: KubeObject): OtherLock {
  return {
    tool: 'Kured',
    message: `the DaemonSet ${keyOf(kured)} does not show how many nodes Kured reboots at once`,
    ends: `--concurrency in its args is a number of at most ${MOST_AT_ONCE}`,
  };
}
